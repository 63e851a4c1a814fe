"""Arrays of any kind as plain ones, without torch."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_array(value: Any, name: str) -> NDArray[Any]:
    """A plain array: `np.matrix` as one, wide numbers in double precision."""
    refuse_masked(value, name)
    array = np.asarray(value)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    return array


def refuse_masked(value: Any, name: str) -> None:
    """Refuse what is masked, as it has no value: in an array, or in rows of a list, which forget it as an array."""
    if has_masked(value):
        raise ValueError(f"{name} has masked entries, which have no value; give them one, as in {name}.filled(0)")


def has_masked(value: Any) -> bool:
    """Whether an entry is masked: of an array, or of rows and numbers in a list."""
    if not isinstance(value, (list, tuple)):
        return bool(np.ma.is_masked(value))
    entries = chain.from_iterable(row if isinstance(row, (list, tuple)) else (row,) for row in value)
    return any(isinstance(one, np.ma.MaskedArray) and np.ma.is_masked(one) for one in entries)


def check_room(rows: int, columns: int, name: str) -> None:
    """Refuse a sparse matrix or a network that would not fit into memory as the dense matrix that is made of it."""
    from quadmatch.machine import measure_available_memory

    needed, there = 8 * rows * columns, measure_available_memory()
    if there is not None and needed > there:
        raise MemoryError(
            f"{name} has {rows} × {columns} entries, which as a dense matrix need {needed / 2**30:.1f} GB of memory, "
            f"and {there / 2**30:.1f} GB are free: match parts of the graphs, or use a machine with more memory"
        )


def to_dense(value: Any, name: str) -> NDArray[Any]:
    """A sparse matrix of scipy's as an array."""
    rows, columns = (1, *value.shape)[-2:]
    check_room(rows, columns, name)
    return np.asarray(value.toarray())
