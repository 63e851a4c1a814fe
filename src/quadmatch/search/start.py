"""Where a search begins: nodes that are alike in what no relabelling changes."""

from __future__ import annotations

import numpy as np

from quadmatch.search.problem import Index, Matrix, Vector
from quadmatch.solvers.compilation import compile_loop

SAME = 1e-11
"""Difference of keys up to which two nodes count as alike."""


@compile_loop
def describe_nodes(a: Matrix, b: Matrix) -> tuple[Vector, Vector]:
    """A number for each node of two graphs of one size: its degree first, then what its neighbours have."""
    size, share = len(a), 1.0
    keys, feature, raised = np.zeros((2, size)), np.ones((2, size)), np.empty((2, size))
    for _ in range(3):
        most = 0.0
        for i in range(size):
            here, there = 0.0, 0.0
            for j in range(size):
                here += (a[i, j] + 0.5 * a[j, i]) * feature[0, j]
                there += (b[i, j] + 0.5 * b[j, i]) * feature[1, j]
            raised[0, i], raised[1, i] = here, there
            most = max(most, abs(here), abs(there))
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
