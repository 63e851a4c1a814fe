"""Isomorphism: nodes that are alike in what no relabelling changes, and exact maps of one graph into another."""

from __future__ import annotations

import numpy as np

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.search.backtracking import order_places
from quadmatch.solvers.search.problem import Index, Matrix, Vector

SAME = 1e-11
"""Difference of keys up to which two nodes count as alike."""


@compile_loop
def describe_nodes(a: Matrix, b: Matrix) -> tuple[Vector, Vector]:
    """A number for each node of two graphs of one size: its degree first, then what its neighbours have."""
    size, share = len(a), 1.0
    keys, feature, raised, ties = (
        np.zeros((2, size)),
        np.ones((2, size)),
        np.empty((2, size)),
        np.empty((2, size, size)),
    )
    for i in range(size):
        for j in range(size):
            ties[0, i, j], ties[1, i, j] = a[i, j] + 0.5 * a[j, i], b[i, j] + 0.5 * b[j, i]
    for _ in range(3):
        most = 0.0
        for g in range(2):
            for i in range(size):
                total = 0.0
                for j in range(size):
                    total += ties[g, i, j] * feature[g, j]
                raised[g, i] = total
                most = max(most, abs(total))
        if most == 0:
            break
        for g in range(2):
            for i in range(size):
                value = raised[g, i] / most
                keys[g, i] += share * value
                feature[g, i] = np.sqrt(abs(value) + 0.01) + 0.1 * value
        share *= 1e-4
    return keys[0], keys[1]


@compile_loop
def rank(keys: Vector) -> Index:
    """Places in ascending order of the keys."""
    order = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        j = i
        while j > 0 and keys[order[j - 1]] > keys[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    return order


@compile_loop
def pair_by_rank(keys_a: Vector, keys_b: Vector, p: Index) -> bool:
    """Nodes of equal rank go together; True if all of them are alike, as in isomorphic graphs."""
    ranked_a, ranked_b = rank(keys_a), rank(keys_b)
    alike = True
    for i in range(len(p)):
        p[ranked_a[i]] = ranked_b[i]
        alike = alike and abs(keys_a[ranked_a[i]] - keys_b[ranked_b[i]]) <= SAME
    return alike


@compile_loop
def _fits(
    a: Matrix, b: Matrix, keys_a: Vector, keys_b: Vector, close: float, order: Index, depth: int, k: int, p: Index
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
def find_isomorphism(a: Matrix, b: Matrix, keys_a: Vector, keys_b: Vector, p: Index, limit: int, stop: Index) -> bool:
    """Fill `p` with a map of `a` into `b` that keeps every edge and gap, if one is found in `limit` steps.

    `stop[0]` ends it from outside.
    """
    size, large, largest = len(a), len(b), 0.0
    tie = np.empty((size, size))
    for i in range(size):
        p[i] = -1
        for j in range(size):
            tie[i, j] = abs(a[i, j]) + abs(a[j, i])
            largest = max(largest, tie[i, j])
    order, close = order_places(tie), 1e-9 * largest
    tried, used, depth, visited = np.zeros(size, np.int64), np.zeros(large, np.bool_), 0, 0
    while 0 <= depth < size and visited < limit and stop[0] == 0:
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
