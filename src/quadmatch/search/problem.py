"""A pair of graphs as one square problem, so that every part of the search knows only one kind.

    maximise  Σ_k ⟨F_k, P S_k Pᵀ⟩ + ⟨L, P⟩   over permutations P of `size` places

A match of every node of the smaller graph, with A the smaller one, minimises weight·Σ (A_ij − B_p(i)p(j))²
− Σ L: F_1 = 2·weight·A and S_1 = B; where B has more nodes, places are added to A, and F_2 = −weight off
the diagonal of real nodes with S_2 = B² charges for the edges that are chosen. A partial match adds as many
places to either graph as the other has nodes; being matched to an added place is worth nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import compile_loop

Matrix = NDArray[np.float64]
Stack = NDArray[np.float64]
Vector = NDArray[np.float64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
Problem = tuple[Stack, Stack, Matrix]


@compile_loop
def weigh_edges(a: Matrix) -> Vector:
    """Half the sum of squared weights of the edges into and out of each node."""
    total = np.zeros(len(a))
    for i in range(len(a)):
        for j in range(len(a)):
            total[i] += (a[i, j] * a[i, j] + a[j, i] * a[j, i]) / 2
    return total


@compile_loop
def state(
    a: Matrix, b: Matrix, linear: Matrix, weight: float, threshold: float, squares: bool = False
) -> Problem:
    """The problem of a pair; `linear` is empty or what matching two nodes adds by itself.

    A threshold of zero matches every node of `a`, which has no more nodes than `b`. Above zero, a match of
    two nodes pays `threshold` times the squared weights of the edges at both, so that only what fits is
    matched. `squares` keeps the second term also where it adds the same to all: it tightens bounds.
    """
    n, m = len(a), len(b)
    partial = threshold > 0
    size = n + m if partial else m
    terms = 2 if not partial and (squares or n < m) else 1
    first, second, worth = (
        np.zeros((terms, size, size)),
        np.zeros((terms, size, size)),
        np.zeros((size, size)),
    )
    for i in range(n):
        for j in range(n):
            first[0, i, j] = 2 * weight * a[i, j]
            if terms == 2 and i != j:
                first[1, i, j] = -weight
    for k in range(m):
        for h in range(m):
            second[0, k, h] = b[k, h]
            if terms == 2:
                second[1, k, h] = b[k, h] * b[k, h]
    if linear.size:
        for i in range(n):
            for k in range(m):
                worth[i, k] = linear[i, k]
    if partial:
        here, there = weigh_edges(a), weigh_edges(b)
        for i in range(n):
            for k in range(m):
                worth[i, k] -= weight * threshold * (here[i] + there[k])
    return first, second, worth


@compile_loop
def permute(second: Stack, p: Index) -> Stack:
    """Rows and columns in the order of the permutation."""
    terms, size, _ = second.shape
    chosen = np.empty((terms, size, size))
    for k in range(terms):
        for i in range(size):
            for j in range(size):
                chosen[k, i, j] = second[k, p[i], p[j]]
    return chosen


@compile_loop
def differentiate(first: Stack, chosen: Stack, linear: Matrix, p: Index, symmetric: bool) -> Matrix:
    """Gradient at a permutation, its columns in the order of the permutation: (i, j) belongs to (i, p(j))."""
    terms, size, _ = first.shape
    gradient = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            gradient[i, j] = linear[i, p[j]]
    for k in range(terms):
        for i in range(size):
            for h in range(size):
                out, back = first[k, i, h], first[k, h, i]
                if symmetric and out != 0:
                    for j in range(size):
                        gradient[i, j] += 2 * out * chosen[k, h, j]
                elif out != 0 or back != 0:
                    for j in range(size):
                        gradient[i, j] += out * chosen[k, j, h] + back * chosen[k, h, j]
    return gradient


@compile_loop
def evaluate(first: Stack, second: Stack, linear: Matrix, p: Index) -> float:
    """What a permutation is worth."""
    terms, size, _ = first.shape
    total = 0.0
    for i in range(size):
        total += linear[i, p[i]]
    for k in range(terms):
        for i in range(size):
            for j in range(size):
                if first[k, i, j] != 0:
                    total += first[k, i, j] * second[k, p[i], p[j]]
    return total
