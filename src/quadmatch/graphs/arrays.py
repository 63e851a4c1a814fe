"""Arrays of any kind as plain ones, without torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_array(value: Any, name: str) -> NDArray[Any]:
    """A plain array: `np.matrix` as one, wide numbers in double precision; what is masked has no value."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries, which have no value; give them one, as in {name}.filled(0)")
    array = np.asarray(value)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    return array
