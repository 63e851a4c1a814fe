"""A pair of graphs, or a quadratic assignment, as one square problem: all parts of the search know only this kind.

    maximise  Σ_k ⟨F_k, P S_k Pᵀ⟩ + ⟨L, P⟩   over permutations P of `size` rows

A match of every node of the smaller graph, with A the smaller one, minimises weight·Σ (A_ij − B_p(i)p(j))²
− Σ L: F_1 = 2·weight·A and S_1 = B; where B has more nodes, rows are added to A, and F_2 = −weight off
the diagonal of real nodes with S_2 = B² charges for the edges that are chosen. A partial match adds as many
rows to either graph as the other has nodes; being matched to an added row adds nothing. A quadratic
assignment min Σ A_ij B_p(i)p(j) + Σ C_ip(i) is the first kind with weight −½ and L = −C.

Symmetric and antisymmetric parts never meet in a sum: ⟨A, B⟩ = ⟨A + Aᵀ, B + Bᵀ⟩/4 + ⟨A − Aᵀ, B − Bᵀ⟩/4. So
directed graphs get one more term, and in every term both matrices are symmetric, or both antisymmetric:
nothing that follows asks which.
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
DENSE = 50
"""Rows up to which a product with zero costs less than to ask whether there is one: who asks is often wrong."""
Problem = tuple[Stack, Stack, Matrix, int]
"""F, S, L and how many terms are symmetric; those come first."""


@compile_loop
def weigh_edges(a: Matrix) -> Vector:
    """Half the sum of squared weights of the edges into and out of each node."""
    total = np.zeros(len(a))
    for i in range(len(a)):
        for j in range(len(a)):
            total[i] += (a[i, j] * a[i, j] + a[j, i] * a[j, i]) / 2
    return total


@compile_loop
def is_symmetric(a: Matrix) -> bool:
    """Whether every edge has the weight of its reverse."""
    for i in range(len(a)):
        for j in range(i):
            if a[i, j] != a[j, i]:
                return False
    return True


@compile_loop
def _set_part(term: Matrix, a: Matrix, sign: float, factor: float) -> None:
    """Write factor·(A ± Aᵀ) into the corner of a term."""
    for i in range(len(a)):
        for j in range(len(a)):
            term[i, j] = factor * (a[i, j] + sign * a[j, i])


@compile_loop
def state(a: Matrix, b: Matrix, linear: Matrix, weight: float, threshold: float, squares: bool) -> Problem:
    """The problem of a pair; `linear` is empty or what matching two nodes adds by itself.

    A threshold of zero matches every node of `a`, which has no more nodes than `b`. Above zero, a match of
    two nodes pays `threshold` times the squared weights of the edges at both, so that only what fits is
    matched. `squares` keeps the second term also where it adds the same to all: it tightens bounds.
    """
    n, m = len(a), len(b)
    size = n + m if threshold > 0 else m
    charged = threshold <= 0 and (squares or n < m)
    directed = not (is_symmetric(a) or is_symmetric(b))
    even = 2 if charged else 1
    terms = even + 1 if directed else even
    first, second, constant = (np.zeros((terms, size, size)), np.zeros((terms, size, size)), np.zeros((size, size)))
    _set_part(first[0], a, 1.0, weight)
    _set_part(second[0], b, 1.0, 0.5)
    if directed:
        _set_part(first[even], a, -1.0, weight)
        _set_part(second[even], b, -1.0, 0.5)
    if charged:
        for i in range(n):
            for j in range(n):
                first[1, i, j] = -weight if i != j else 0.0
        for k in range(m):
            for h in range(m):
                second[1, k, h] = (b[k, h] * b[k, h] + b[h, k] * b[h, k]) / 2
    for i in range(linear.size // m if m else 0):
        for k in range(m):
            constant[i, k] = linear[i, k]
    if threshold > 0:
        edges_a, edges_b = weigh_edges(a), weigh_edges(b)
        for i in range(n):
            for k in range(m):
                constant[i, k] -= weight * threshold * (edges_a[i] + edges_b[k])
    return first, second, constant, even


@compile_loop
def permute(second: Stack, p: Index) -> Stack:
    """Rows and columns in the order of the permutation."""
    terms, size, _ = second.shape
    chosen = np.empty((terms, size, size))
    for k in range(terms):
        for i in range(size):
            for j in range(size):
                chosen[k, i, j] = second[k, p[i], np.uint64(p[j])]
    return chosen


@compile_loop
def differentiate(first: Stack, chosen: Stack, linear: Matrix, p: Index, gradient: Matrix, stop: Index) -> None:
    """Gradient at a permutation, its columns in the order of the permutation: (i, j) belongs to (i, p(j)).

    `stop[0]`, set from outside, leaves it unfinished.
    """
    terms, size, _ = first.shape
    for i in range(size):
        for j in range(size):
            gradient[i, j] = linear[i, p[j]]
    for k in range(terms):
        for i in range(size):
            if stop[0] != 0:
                return
            for h in range(0, size - 3, 4):
                w, x, y, z = 2 * first[k, h, i], 2 * first[k, h + 1, i], 2 * first[k, h + 2, i], 2 * first[k, h + 3, i]
                if size <= DENSE or w != 0 or x != 0 or y != 0 or z != 0:
                    for j in range(size):
                        gradient[i, j] += (w * chosen[k, h, j] + x * chosen[k, h + 1, j]) + (
                            y * chosen[k, h + 2, j] + z * chosen[k, h + 3, j]
                        )
            for h in range(size - size % 4, size):
                factor = 2 * first[k, h, i]
                for j in range(size):
                    gradient[i, j] += factor * chosen[k, h, j]


@compile_loop
def evaluate(first: Stack, chosen: Stack, linear: Matrix, p: Index) -> float:
    """The objective of a permutation; `chosen` is in its order already, so nothing is looked up."""
    terms, size, _ = first.shape
    total = 0.0
    for i in range(size):
        total += linear[i, p[i]]
    for k in range(terms):
        for i in range(size):
            for j in range(size):
                total += first[k, i, j] * chosen[k, i, j]
    return total
