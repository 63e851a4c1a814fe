"""Where to draw the nodes of a graph that has no positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

LARGEST_REFINED = 400
"""Nodes up to which the layout is refined after its start: each round costs the square of the nodes."""


def lay_out(adjacency: NDArray[Any], rounds: int = 60) -> Points:
    """Positions whose distances resemble the number of edges between nodes (stress majorisation)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    joined = (adjacency != 0) | (adjacency.T != 0)
    count = len(joined)
    if count < 2:
        return np.full((count, 2), 0.5)
    steps = shortest_path(csr_array(joined.astype(np.float64)), directed=False, unweighted=True)
    reached = steps[np.isfinite(steps)].max()
    steps = np.where(np.isfinite(steps), steps, reached + 2)  # separate parts are drawn beside each other
    points = _scale_classically(steps)
    if count <= LARGEST_REFINED:
        off = ~np.eye(count, dtype=bool)
        weights = np.where(off, 1 / np.maximum(steps, 1) ** 2, 0)
        inverse = np.linalg.pinv(np.diag(weights.sum(1)) - weights)
        for _ in range(rounds):
            points = inverse @ (_pull(points, steps, weights) @ points)
    return points


def _scale_classically(distances: Points) -> Points:
    """The two leading coordinates of classical scaling; nodes with equal ones are moved a little apart."""
    squares = distances**2
    centred = -0.5 * (squares - squares.mean(0) - squares.mean(1, keepdims=True) + squares.mean())
    values, vectors = np.linalg.eigh(centred)
    points = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-9))
    angle = 2.4 * np.arange(len(points))
    turned: Points = points + 0.05 * np.stack((np.cos(angle), np.sin(angle)), 1)
    return turned


def _pull(points: Points, steps: Points, weights: Points) -> Points:
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
    pull: Points = -weights * steps / np.maximum(apart, 1e-9)
    np.fill_diagonal(pull, 0)
    np.fill_diagonal(pull, -pull.sum(1))
    return pull


def align(points: Points, towards: Points, pairs: NDArray[np.int64]) -> Points:
    """The points turned (or mirrored) and scaled so that partners lie as near to each other as possible."""
    if len(pairs) < 2:
        return points
    here, there = points[pairs[:, 1]], towards[pairs[:, 0]]
    centre, goal = here.mean(0), there.mean(0)
    left, sizes, right = np.linalg.svd((here - centre).T @ (there - goal))
    scale = sizes.sum() / max(float(((here - centre) ** 2).sum()), 1e-12)
    return np.asarray((points - centre) @ (left @ right) * scale + goal)
