"""Delaunay graphs of many small sets of points, equal to `quadmatch.delaunay.delaunay` of each and faster."""

from __future__ import annotations

from functools import cache
from inspect import unwrap
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy.typing import NDArray

from quadmatch.delaunay import delaunay

DOUBT = 1e-9
"""Relative size of a difference below which its sign is left to the careful, slower construction."""


def triangulate_many(points: Float[np.ndarray, "G K 2"], mask: Bool[np.ndarray, "G K"]) -> UInt8[np.ndarray, "G K K"]:
    """Adjacency of the masked points of each set, zero elsewhere.

    Two points are joined if and only if some circle through both has no other point inside. The circles
    through p and q have their centres on the bisector, at (p + q)/2 + t·n; each other point r bounds t by
    (r - p)·(r - q) / 2n·(r - p), from above on one side of the line pq and from below on the other: joined
    means that an interval of t is left. Sets in which a bound is in doubt go to `delaunay`.
    """
    adjacency = np.zeros((*mask.shape, mask.shape[1]), dtype=np.uint8)
    certain = _compiled()(points.astype(np.float64), mask, adjacency, DOUBT)
    for place in np.flatnonzero(~certain):
        nodes = np.flatnonzero(mask[place])
        adjacency[place] = 0
        careful = delaunay(torch.from_numpy(points[place, nodes])).numpy()
        adjacency[place][np.ix_(nodes, nodes)] = careful.astype(np.uint8)
    return adjacency


@cache
def _compiled() -> Any:
    from numba import njit

    # Checked annotations, as in tests, wrap the function in one that cannot be compiled.
    return njit(cache=True)(unwrap(_join_sets))


def _join_sets(
    points: NDArray[np.float64], mask: NDArray[np.bool_], adjacency: NDArray[np.uint8], doubt: float
) -> NDArray[np.bool_]:
    """Fill the adjacency of each set; False for a set in which a sign was in doubt. Compiled."""
    certain = np.ones(len(points), dtype=np.bool_)
    for place in range(len(points)):
        nodes = np.flatnonzero(mask[place])
        x, y = points[place, :, 0], points[place, :, 1]
        for p in nodes:
            for q in nodes:
                if q <= p:
                    continue
                along_x, along_y = x[q] - x[p], y[q] - y[p]
                lower, upper = -np.inf, np.inf
                for r in nodes:
                    if r in (p, q):
                        continue
                    from_x, from_y = x[r] - x[p], y[r] - y[p]
                    cross = along_x * from_y - along_y * from_x
                    size = along_x**2 + along_y**2 + from_x**2 + from_y**2
                    if abs(cross) <= doubt * size:
                        certain[place] = False
                        break
                    bound = (from_x * (x[r] - x[q]) + from_y * (y[r] - y[q])) / (2 * cross)
                    if cross > 0:
                        upper = min(upper, bound)
                    else:
                        lower = max(lower, bound)
                    if upper < lower - doubt * (1 + abs(upper) + abs(lower)):
                        break
                left = upper - lower
                if np.isfinite(left) and abs(left) <= doubt * (1 + abs(upper) + abs(lower)):
                    certain[place] = False
                if left > 0:
                    adjacency[place, p, q] = adjacency[place, q, p] = 1
    return certain
