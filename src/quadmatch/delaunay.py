"""Points to adjacency: Delaunay, fully connected, nearest neighbours, with every degenerate case defined.

Every construction is symmetric, 0/1 and without self loops; no node is isolated unless it is alone; the order
in which the points are given never changes which points are joined, not even where points tie.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from quadmatch.graph import Graph

Construction = Callable[[Tensor], Tensor]


def delaunay(points: Float[Tensor, "N 2"]) -> Float[Tensor, "N N"]:
    """Delaunay triangulation; collinear points give the path along their line, equal points share neighbours.

    Two points are joined; one point has no edge. A point that lies exactly on another (or so close that the
    triangulation cannot tell them apart) is joined to it and to every neighbour of it. Where four points or
    more lie on one circle the triangulation depends on their coordinates only.
    """
    coordinates = _check(points)
    if len(coordinates) < 3:
        return fully_connected(points)
    # Sorted, so that the answer depends on the order given nowhere, also where several triangulations exist.
    order = np.lexsort((coordinates[:, 1], coordinates[:, 0]))
    ordered = coordinates[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(1)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    joined = _triangulate(_normalise(ordered[new]))
    adjacency = joined[place[:, None], place[None, :]]
    np.fill_diagonal(adjacency, 0)
    return torch.from_numpy(adjacency).to(points)


def fully_connected(points: Float[Tensor, "N 2"]) -> Float[Tensor, "N N"]:
    """Every point joined to every other."""
    _check(points)
    ones = torch.ones(len(points), len(points), dtype=points.dtype, device=points.device)
    return ones.fill_diagonal_(0)


def nearest(points: Float[Tensor, "N 2"], k: int = 6) -> Float[Tensor, "N N"]:
    """Each point joined to its `k` nearest and all that tie with the last of them; symmetric by union."""
    coordinates = _check(points)
    if k < 1:
        raise ValueError(f"nearest: k must be at least 1, so that no point is isolated; got {k}")
    if len(coordinates) <= k + 1:
        return fully_connected(points)
    coordinates = _normalise(coordinates)
    distance = ((coordinates[:, None] - coordinates[None]) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    last = np.partition(distance, k - 1, axis=1)[:, k - 1 : k]
    close = distance <= last
    return torch.from_numpy((close | close.T).astype(np.float32)).to(points)


CONSTRUCTIONS: dict[str, Construction] = {"delaunay": delaunay, "fully_connected": fully_connected, "nearest": nearest}


def build_graph(points: Float[Tensor, "N 2"], construction: str | Construction = "delaunay") -> Graph:
    """A batch of one graph on the points; `construction` is a name or any function of the points."""
    if isinstance(construction, str):
        if construction not in CONSTRUCTIONS:
            known = ", ".join(CONSTRUCTIONS)
            raise ValueError(f"build_graph: construction must be one of {known} or a function; got {construction!r}")
        construction = CONSTRUCTIONS[construction]
    mask = torch.ones(1, len(points), dtype=torch.bool, device=points.device)
    return Graph(points[None], mask, construction(points)[None])


def _check(points: Tensor) -> NDArray[np.float64]:
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"points must have shape [N, 2], one (x, y) a row; got {list(points.shape)}")
    coordinates = points.detach().cpu().double().numpy()
    if not np.isfinite(coordinates).all():
        bad = int(np.flatnonzero(~np.isfinite(coordinates).all(1))[0])
        raise ValueError(f"points must be finite; point {bad} is {coordinates[bad].tolist()}")
    return coordinates


def _normalise(coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Into the unit square at one scale: neither a far origin nor a tiny or huge unit changes the graph."""
    half = coordinates / 2  # the extent of coordinates near the largest float would overflow
    centred = half - half.min(0)
    extent = float(centred.max())
    return np.asarray(centred / extent) if extent > 0 else centred


@cache
def _qhull() -> Any:
    from scipy.spatial import Delaunay, QhullError

    return Delaunay, QhullError


def _triangulate(unique: NDArray[np.float64]) -> NDArray[np.float32]:
    """Adjacency with ones on the diagonal of distinct points in sorted order."""
    count = len(unique)
    adjacency = np.eye(count, dtype=np.float32)
    if count <= 2:
        return np.ones((count, count), dtype=np.float32)
    triangulation, failure = _qhull()
    try:
        result = triangulation(unique)
    except failure:
        return _path(unique)
    first, second, third = result.simplices.T
    starts, ends = np.concatenate((first, second, third)), np.concatenate((second, third, first))
    adjacency[starts, ends] = adjacency[ends, starts] = 1
    if len(result.coplanar):
        _attach_left_out(adjacency, unique)
    return adjacency


def _attach_left_out(adjacency: NDArray[np.float32], unique: NDArray[np.float64]) -> None:
    """A point that the triangulation could not tell from another shares the nearest used one's neighbours."""
    used = np.flatnonzero(adjacency.sum(1) > 1)
    for point in np.flatnonzero(adjacency.sum(1) == 1):
        twin = used[((unique[used] - unique[point]) ** 2).sum(1).argmin()]
        adjacency[point, used] = adjacency[used, point] = adjacency[twin, used]


def _path(unique: NDArray[np.float64]) -> NDArray[np.float32]:
    """Neighbours along the line on which all points lie (as closely as the triangulation can tell)."""
    spread = unique.max(0) - unique.min(0)
    along = np.argsort(unique[:, int(spread.argmax())], kind="stable")
    adjacency = np.eye(len(unique), dtype=np.float32)
    adjacency[along[:-1], along[1:]] = adjacency[along[1:], along[:-1]] = 1
    return adjacency
