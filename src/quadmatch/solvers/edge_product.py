"""Compiled product with an affinity between edges, imported only when one is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import FUSED, compile_loop


@compile_loop(fastmath=FUSED)
def multiply_edges(
    edge: NDArray[Any],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    v: NDArray[Any],
    result: NDArray[Any],
) -> None:
    """Add Ke[(i→j), (k→l)]·V[j,l] to result[i,k], for each pair of edges of each pair of graphs.

    Columns are spread to one a target edge before and gathered after, so that the loop over all pairs of
    edges, which reads Ke once, is one run of multiplications and additions without an index.
    """
    nodes, edges = v.shape[1], edge.shape[2]
    spread, total = np.empty((nodes, edges), v.dtype), np.empty((nodes, edges), v.dtype)
    for b in range(v.shape[0]):
        for f in range(edges):
            end = target[b, f, 1]
            for j in range(nodes):
                spread[j, f] = v[b, j, end] if end >= 0 else 0
        total[:] = 0
        for e in range(edge.shape[1]):
            start, end = source[b, e]
            if start >= 0:
                to, come, affinity = total[start], spread[end], edge[b, e]
                for f in range(edges):
                    to[f] += affinity[f] * come[f]
        for f in range(edges):
            start = target[b, f, 0]
            if start >= 0:
                for i in range(nodes):
                    result[b, i, start] += total[i, f]
