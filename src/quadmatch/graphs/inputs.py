"""Whatever users hand over as graphs, to matrices: arrays, tensors, sparse, networkx, lists of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quadmatch.graphs.arrays import check_room, read_array, refuse_masked, to_dense
from quadmatch.graphs.edge_lists import advise_on_edges
from quadmatch.graphs.labels import Labels, collect_labels

Matrix = NDArray[Any] | Tensor


@dataclass(frozen=True)
class Inputs:
    """Checked matrices of each pair and how to hand results back."""

    sources: list[Matrix]
    targets: list[Matrix]
    unaries: list[Matrix] | None
    single: bool
    """One pair was given, not a list."""
    device: torch.device | None
    """Of the tensors; None: numpy in, numpy out."""
    kind: torch.dtype
    """Number format of results."""
    labels: Labels
    """Names of nodes, where there are some."""

    @cached_property
    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Nodes of the source and of the target of each pair."""
        sides = self.sources, self.targets
        n, m = (np.fromiter(map(len, side), np.int64, len(side)) for side in sides)
        return n, m


def read_inputs(a: Any, b: Any, unary: Any) -> Inputs:
    """Both graphs, or both lists of graphs, and their node similarities, checked."""
    single = not is_list(a)
    if single == is_list(b):
        raise TypeError(f"a and b must both be one graph or both be lists; got {_describe(a)} and {_describe(b)}")
    if unary is not None and not single and not is_list(unary):
        raise TypeError(f"unary must be a list, one matrix a pair, because a and b are; got {_describe(unary)}")
    sources, targets = ([a], [b]) if single else (list(a), list(b))
    unaries = None if unary is None else [unary] if single else list(unary)
    if len(sources) != len(targets):
        raise ValueError(f"a and b must be lists of one length; got {len(sources)} and {len(targets)} graphs")
    if unaries is not None and len(unaries) != len(sources):
        raise ValueError(f"unary must have one matrix a pair, {len(sources)}; got {len(unaries)}")
    indices = [None] if single else range(len(sources))
    labels: Labels = {}
    # Most graphs are arrays without any fault, and there may be many.
    if not (plain := _are_square_arrays([*sources, *targets])):
        labels = collect_labels(sources, targets)
        sources, targets = (
            [_read_graph(one, _name(side, k)) for k, one in zip(indices, graphs)]
            for side, graphs in (("a", sources), ("b", targets))
        )
    if unaries is not None:
        sizes = [(len(x), len(y)) for x, y in zip(sources, targets)]
        unaries = [_read_unary(one, size, _name("unary", k)) for k, one, size in zip(indices, unaries, sizes)]
    matrices = [*sources, *targets, *(unaries or ())]
    device = None if plain and unaries is None else _find_device(matrices)
    return Inputs(sources, targets, unaries, single, device, _find_kind(matrices), labels)


def is_list(value: Any) -> bool:
    """A list or tuple of graphs, as opposed to one matrix written as a list of rows of numbers."""
    if not isinstance(value, (list, tuple)):
        return False
    if not value:
        return True
    first = value[0]
    if isinstance(first, (list, tuple)):
        return bool(first) and not np.isscalar(first[0])
    return not np.isscalar(first) and getattr(first, "ndim", 2) != 1


def to_matrix(value: Any, name: str) -> Matrix:
    """A dense tensor or array of real numbers with two axes."""
    if isinstance(value, Tensor):
        if value.is_complex():
            raise TypeError(f"{name} must be real; got a tensor of {value.dtype}")
        matrix: Matrix = value if value.layout == torch.strided else value.to_dense()
    elif isinstance(value, np.ndarray):
        matrix = read_array(value, name)
    elif hasattr(value, "toarray") and hasattr(value, "nnz"):
        matrix = to_dense(value, name)
    elif hasattr(value, "nodes") and hasattr(value, "is_directed"):
        matrix = _read_network(value, name)
    elif hasattr(value, "__array__") or isinstance(value, (list, tuple)):
        matrix = _read_rows(value, name)
    else:
        raise TypeError(
            f"{name} must be a matrix (numpy, torch, scipy sparse, rows of numbers) or a networkx graph; "
            f"got {_describe(value)}"
        )
    if isinstance(matrix, np.ndarray) and matrix.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got an array of {matrix.dtype}")
    if matrix.ndim != 2:
        advice = f"; for a batch pass a list, list({name})" if matrix.ndim == 3 else ""
        raise ValueError(f"{name} must have two axes; got shape {list(matrix.shape)}{advice}")
    return matrix


def _are_square_arrays(values: list[Any]) -> bool:
    """Whether nothing has to be done to any of them; kinds and formats are few, so that it is quick."""
    if set(map(type, values)) != {np.ndarray}:
        return False
    known = all(kind.kind in "fiub" and kind.itemsize <= 8 for kind in set(map(attrgetter("dtype"), values)))
    return known and all(len(shape) == 2 and shape[0] == shape[1] for shape in set(map(attrgetter("shape"), values)))


def _read_graph(value: Any, name: str) -> Matrix:
    matrix = to_matrix(value, name)
    if matrix.shape[0] != matrix.shape[1]:
        advice = advise_on_edges(matrix)
        raise ValueError(f"{name} must be square, an adjacency matrix; got shape {list(matrix.shape)}{advice}")
    return matrix


def _read_unary(value: Any, shape: tuple[int, int], name: str) -> Matrix:
    matrix = to_matrix(value, name)
    if tuple(matrix.shape) != shape:
        raise ValueError(f"{name} must have shape {list(shape)}, nodes of a by nodes of b; got {list(matrix.shape)}")
    return matrix


def _name(side: str, index: int | None) -> str:
    return side if index is None else f"{side}[{index}]"


def _read_network(graph: Any, name: str) -> NDArray[np.float64]:
    """Adjacency in the order of `graph.nodes`; attribute "weight", else one; parallel edges are summed."""
    row = {node: index for index, node in enumerate(graph.nodes)}
    check_room(len(row), len(row), name)
    matrix = np.zeros((len(row), len(row)))
    for start, end, weight in graph.edges(data="weight", default=1):
        try:
            value = float(weight)
        except (TypeError, ValueError):
            raise TypeError(f"{name}: the weight of edge ({start}, {end}) must be a number; got {weight!r}") from None
        matrix[row[start], row[end]] += value
        if not graph.is_directed() and start != end:
            matrix[row[end], row[start]] += value
    return matrix


def _read_rows(value: Any, name: str) -> NDArray[Any]:
    refuse_masked(value, name)
    try:
        rows = read_array(np.asarray(value), name)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length") from None
    return rows.reshape(0, 0) if rows.size == 0 and rows.ndim < 2 else rows


def _describe(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {list(shape)}" if shape is not None else "")


def _find_device(matrices: Sequence[Matrix]) -> torch.device | None:
    devices = {matrix.device for matrix in matrices if not isinstance(matrix, np.ndarray)}
    if len(devices) > 1:
        raise ValueError(f"all tensors must be on one device; got {', '.join(sorted(map(str, devices)))}")
    device = devices.pop() if devices else None
    if device is not None and device.type == "meta":
        raise ValueError("tensors must hold numbers; got tensors on the meta device")
    return device


def _find_kind(matrices: Sequence[Matrix]) -> torch.dtype:
    """The widest floating-point format given, at least single; numpy's whole numbers count as double."""
    found = None
    for kind in set(map(attrgetter("dtype"), matrices)):
        wide = kind == torch.float64 or (isinstance(kind, np.dtype) and (kind.kind != "f" or kind.itemsize > 4))
        found = torch.float64 if wide or found == torch.float64 else torch.float32
    return found or torch.float64


def to_float64(matrix: Matrix) -> NDArray[np.float64]:
    """As a numpy array in double precision, laid out as torch can take it."""
    if isinstance(matrix, Tensor):
        return matrix.detach().to("cpu", torch.float64).numpy()
    return np.ascontiguousarray(matrix, dtype=np.float64)
