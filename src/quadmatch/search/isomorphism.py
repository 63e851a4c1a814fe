"""Isomorphism: an exact map is tried first on graphs that look alike, and on a part and the whole."""

from __future__ import annotations

import numpy as np

from quadmatch.search.backtracking import order_places
from quadmatch.search.problem import Index, Matrix, Vector
from quadmatch.search.start import SAME
from quadmatch.solvers.compilation import compile_loop


@compile_loop
def _fits(
    a: Matrix,
    b: Matrix,
    keys_a: Vector,
    keys_b: Vector,
    close: float,
    order: Index,
    depth: int,
    k: int,
    p: Index,
) -> bool:
    i = order[depth]
    if abs(keys_a[i] - keys_b[k]) > SAME:
        return False
    for d in range(depth):
        j = order[d]
        if abs(a[i, j] - b[k, p[j]]) > close or abs(a[j, i] - b[p[j], k]) > close:
            return False
    return True


@compile_loop
def find_isomorphism(a: Matrix, b: Matrix, keys_a: Vector, keys_b: Vector, p: Index, limit: int) -> bool:
    """Fill `p` with a map of `a` into `b` that keeps every edge and gap, if one is found in `limit` steps."""
    size, large, largest = len(a), len(b), 0.0
    tie = np.empty((size, size))
    for i in range(size):
        p[i] = -1
        for j in range(size):
            tie[i, j] = abs(a[i, j]) + abs(a[j, i])
            largest = max(largest, tie[i, j])
    order, close = order_places(tie), 1e-9 * largest
    tried, used, depth, visited = np.zeros(size, np.int64), np.zeros(large, np.bool_), 0, 0
    while 0 <= depth < size and visited < limit:
        visited += 1
        i = order[depth]
        if p[i] >= 0:
            used[p[i]] = False
            p[i] = -1
        k = tried[depth]
        while k < large and (used[k] or not _fits(a, b, keys_a, keys_b, close, order, depth, k, p)):
            k += 1
        if k == large:
            tried[depth] = 0
            depth -= 1
        else:
            tried[depth] = k + 1
            used[k], p[i] = True, k
            depth += 1
    return depth == size
