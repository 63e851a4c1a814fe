"""The start in the middle of all permutations: the best assignment for the gradient there."""

from __future__ import annotations

import numpy as np

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.linear.shortest_paths import assign, make_room
from quadmatch.solvers.search.problem import Index, Matrix, Stack


@compile_loop
def choose(scores: Matrix, stop: Index) -> Index:
    """The columns that score most together, one for each row; no more rows than columns.

    If `stop[0]` is set, they are still one for each row, but others may score more.
    """
    columns, costs = np.empty(len(scores), np.int64), np.empty(scores.shape)
    for i in range(len(scores)):
        for j in range(scores.shape[1]):
            costs[i, j] = -scores[i, j]
    assign(costs, False, columns, make_room(scores.shape[1]), stop)
    return columns


@compile_loop
def start_in_middle(first: Stack, second: Stack, linear: Matrix, stop: Index) -> Index:
    """The best permutation for the gradient where all entries are equal: 2/size · Σ_k (F_k 1)(S_k 1)ᵀ + L."""
    terms, size, _ = first.shape
    gradient = linear.copy()
    for k in range(terms):
        for i in range(size):
            row = 0.0
            for h in range(size):
                row += first[k, i, h]
            if row != 0:
                for j in range(size):
                    for h in range(size):
                        gradient[i, j] += 2 / size * row * second[k, j, h]
    return choose(gradient, stop)
