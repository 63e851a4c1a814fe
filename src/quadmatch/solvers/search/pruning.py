"""Pruning: what a partial match of large graphs leaves out."""

from __future__ import annotations

import numpy as np

from quadmatch.solvers.search.problem import Index, Matrix, Vector


def prune(a: Matrix, b: Matrix, linear: Matrix | None, weight: float, threshold: float, columns: Index) -> Index:
    """Leave out, the worst first, pairs that cost a partial match more than they give; a partner of m is none."""
    m = len(b)
    columns = columns.copy()
    edges_a, edges_b = ((matrix**2 + matrix.T**2).sum(1) / 2 for matrix in (a, b))
    while True:
        rows = np.flatnonzero(columns < m)
        kept = columns[rows]
        gains = _add_up(a[np.ix_(rows, rows)], b[np.ix_(kept, kept)], weight)
        gains -= weight * threshold * (edges_a[rows] + edges_b[kept])
        if linear is not None:
            gains += linear[rows, kept]
        drop = gains < min(0.0, float(gains.min(initial=0.0)) / 2)
        if not drop.any():
            return columns
        columns[rows[drop]] = m


def _add_up(a: Matrix, b: Matrix, weight: float) -> Vector:
    """What edges to other matched nodes, in both directions, add for each matched node."""
    common = a * b
    return np.asarray(2 * weight * (common.sum(0) + common.sum(1)))
