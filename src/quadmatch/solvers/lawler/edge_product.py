"""Compiled product with an affinity between edges, imported only when one is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import FUSED, compile_loop


@compile_loop(fastmath=FUSED)
def multiply_edges(
    edge: NDArray[Any], source: NDArray[np.int64], target: NDArray[np.int64], v: NDArray[Any], result: NDArray[Any]
) -> None:
    """Add Ke[(i→j), (k→l)]·V[j,l] to result[i,k], for each pair of edges, channel and pair of graphs.

    Columns are spread to one a target edge before and gathered after, so that the loop over all pairs of
    edges, which reads Ke once, is one run of multiplications and additions without an index.
    """
    batch, channels, nodes, _ = v.shape
    edges = edge.shape[2]
    spread, total = np.empty((nodes, edges), v.dtype), np.empty((nodes, edges), v.dtype)
    for b in range(batch):
        for c in range(channels):
            for f in range(edges):
                end = target[b, f, 1]
                for j in range(nodes):
                    spread[j, f] = v[b, c, j, end] if end >= 0 else 0
                    total[j, f] = 0
            for e in range(edge.shape[1]):
                start, end = source[b, e, 0], source[b, e, 1]
                if start >= 0:
                    to, come, affinity = total[start], spread[end], edge[b, e]
                    for f in range(edges):
                        to[f] += affinity[f] * come[f]
            for f in range(edges):
                start = target[b, f, 0]
                if start >= 0:
                    for i in range(nodes):
                        result[b, c, i, start] += total[i, f]
