"""Backtracking: every permutation of a small problem, but for those that cannot be the best.

Both matrices of a term are symmetric, or both antisymmetric: what two places add is the same in both directions.
"""

from __future__ import annotations

import numpy as np

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.search.problem import Flags, Index, Matrix, Stack, evaluate, permute


@compile_loop
def order_places(tie: Matrix) -> Index:
    """Places with strong ties to those before them come first: a bad choice shows early."""
    size = len(tie)
    order, placed, seen, whole = np.empty(size, np.int64), np.zeros(size), np.zeros(size), np.zeros(size)
    for i in range(size):
        for j in range(size):
            whole[i] += tie[i, j]
    for depth in range(size):
        best = -1
        for i in range(size):
            if placed[i] == 0 and (
                best < 0 or seen[i] > seen[best] or (seen[i] == seen[best] and whole[i] > whole[best])
            ):
                best = i
        order[depth] = best
        placed[best] = 1
        for i in range(size):
            seen[i] += tie[best, i]
    return order


@compile_loop
def _tie_places(first: Stack) -> Matrix:
    terms, size, _ = first.shape
    tie = np.zeros((size, size))
    for k in range(terms):
        for i in range(size):
            for j in range(size):
                tie[i, j] += 2 * abs(first[k, i, j])
    return tie


@compile_loop
def _bound_pairs(first: Stack, second: Stack) -> Matrix:
    """The most that a pair of places can add, whatever they are matched to; both directions."""
    terms, size, _ = first.shape
    bound = np.zeros((size, size))
    for i in range(size):
        for j in range(i):
            most = -np.inf
            for k in range(size):
                for h in range(size):
                    if k != h:
                        total = 0.0
                        for t in range(terms):
                            total += 2 * first[t, i, j] * second[t, k, h]
                        most = max(most, total)
            bound[i, j] = bound[j, i] = most
    return bound


@compile_loop
def _foresee(first: Stack, second: Stack, promise: Stack, order: Index, depth: int, taken: int, used: Flags) -> None:
    """What each placement still open would add once order[depth] is on `taken`."""
    i = order[depth]
    for d in range(depth + 1, len(order)):
        j = order[d]
        for h in range(len(order)):
            if not used[h]:
                total = promise[depth, j, h]
                for t in range(len(first)):
                    total += 2 * first[t, i, j] * second[t, taken, h]
                promise[depth + 1, j, h] = total


@compile_loop
def _hope(promise: Stack, bound: Matrix, order: Index, depth: int, used: Flags) -> float:
    """The most that all placements open at this depth can add."""
    total = 0.0
    for d in range(depth, len(order)):
        most = -np.inf
        for h in range(len(order)):
            if not used[h]:
                most = max(most, promise[depth, order[d], h])
        total += most
        for e in range(depth, d):
            total += bound[order[d], order[e]]
    return total


@compile_loop
def search_all(first: Stack, second: Stack, linear: Matrix, p: Index) -> None:
    """Bring `p` to the best of all permutations.

    `promise[d, i, k]` is what placing i on k would add after d placements, counting pairs of which one is
    placed. Its maximum for each i and the most that each pair of open places can add bound what is still to
    come.
    """
    _, size, _ = first.shape
    order, bound = order_places(_tie_places(first)), _bound_pairs(first, second)
    promise = np.empty((size + 1, size, size))
    for i in range(size):
        for k in range(size):
            promise[0, i, k] = linear[i, k]
    tried, place, value = np.zeros(size, np.int64), np.full(size, -1), np.zeros(size + 1)
    used = np.zeros(size, np.bool_)
    best, depth = evaluate(first, permute(second, p), linear, p), 0
    small = 1e-9 * abs(best) + 1e-300
    while depth >= 0:
        if place[depth] >= 0:
            used[place[depth]] = False
            place[depth] = -1
        while tried[depth] < size and used[tried[depth]]:
            tried[depth] += 1
        if tried[depth] == size:
            tried[depth] = 0
            depth -= 1
            continue
        k = tried[depth]
        tried[depth] += 1
        used[k], place[depth] = True, k
        value[depth + 1] = value[depth] + promise[depth, order[depth], k]
        if depth + 1 == size:
            if value[size] > best + small:
                best = float(value[size])
                for d in range(size):
                    p[order[d]] = place[d]
            continue
        _foresee(first, second, promise, order, depth, k, used)
        if value[depth + 1] + _hope(promise, bound, order, depth + 1, used) > best + small:
            depth += 1
