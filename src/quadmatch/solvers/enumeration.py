"""All permutations of a few nodes, so that the answer is the optimum."""

from __future__ import annotations

import numpy as np

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.exchanges import Permutation, Problem


@compile_loop
def extend(problem: Problem, permutation: Permutation, node: int, target: int) -> float:
    """What it adds to the cost to give `node` this target, the nodes before it having theirs."""
    cost: float = problem.source[node, node] * problem.target[target, target] + problem.linear[node, target]
    for other in range(node):
        there = permutation[other]
        cost += problem.source[node, other] * problem.target[target, there]
        cost += problem.source[other, node] * problem.target[there, target]
    return cost


@compile_loop
def enumerate_all(problem: Problem, best: Permutation) -> int:
    """Leave in `best` the first optimum in lexical order; return how many placements were tried."""
    n = len(best)
    permutation, costs, least, tried = np.full(n, -1), np.zeros(n + 1), np.inf, 0
    taken = np.zeros(n, np.bool_)
    node = 0
    while node >= 0:
        target = permutation[node]
        if target >= 0:
            taken[target] = False
        target += 1
        while target < n and taken[target]:
            target += 1
        if target == n:
            permutation[node] = -1
            node -= 1
            continue
        tried += 1
        permutation[node], taken[target] = target, True
        costs[node + 1] = costs[node] + extend(problem, permutation, node, target)
        if node < n - 1:
            node += 1
        elif costs[n] < least - problem.tolerance:
            least = costs[n]
            best[:] = permutation
    return tried
