"""The stages of a search as loops over chosen pairs; each reads and writes the pairs' permutations.

Stages are compiled one by one, when first needed, and for larger graphs only their parts are (`strategy`).
Each looks at `pairs.stop` between pairs, and those whose parts may take long hand it on to them.
"""

from __future__ import annotations

import numpy as np

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.search.backtracking import search_all
from quadmatch.solvers.search.exchange import improve
from quadmatch.solvers.search.isomorphism import describe_nodes, find_isomorphism, pair_by_rank
from quadmatch.solvers.search.middle import start_in_middle
from quadmatch.solvers.search.pairs import Pairs, read_pair
from quadmatch.solvers.search.problem import Flags, Index, evaluate, permute, state
from quadmatch.solvers.search.relaxation import relax_pair


@compile_loop
def start_alike(pairs: Pairs, chosen: Index, permutations: Index, alike: Flags, exact: Flags) -> None:
    """Nodes of equal rank go together; where all of them look alike, an isomorphism is looked for."""
    for index in chosen:
        if pairs.stop[0] != 0:
            return
        a, b, _, _ = read_pair(pairs, index)
        at = pairs.starts[index, 3]
        p, found = permutations[at : at + len(b)], np.empty(len(b), np.int64)
        keys_a, keys_b = describe_nodes(a, b)
        alike[index] = pair_by_rank(keys_a, keys_b, p)
        if alike[index]:
            exact[index] = find_isomorphism(a, b, keys_a, keys_b, found, 1000 + 20 * len(p), pairs.stop)
            if exact[index]:
                for i in range(len(p)):
                    p[i] = found[i]


@compile_loop
def start_inside(pairs: Pairs, chosen: Index, permutations: Index, exact: Flags) -> None:
    """Look for the smaller graph as it is inside the larger; few steps show most weighted ones."""
    for index in chosen:
        if pairs.stop[0] != 0:
            return
        a, b, _, _ = read_pair(pairs, index)
        at, n, m = pairs.starts[index, 3], len(a), len(b)
        found, used = np.empty(n, np.int64), np.zeros(m, np.bool_)
        limit = 4 * m + 400000 // (m * m)
        exact[index] = find_isomorphism(a, b, np.zeros(n), np.zeros(m), found, limit, pairs.stop)
        if exact[index]:
            for i in range(n):
                permutations[at + i], used[found[i]] = found[i], True
            for k in range(m):
                if not used[k]:
                    permutations[at + n], n = k, n + 1


@compile_loop
def start_linear(pairs: Pairs, chosen: Index, permutations: Index) -> None:
    """The best permutation for the gradient in the middle of all permutations."""
    for index in chosen:
        if pairs.stop[0] != 0:
            return
        a, b, unary, weight = read_pair(pairs, index)
        first, second, linear, _ = state(a, b, unary, weight, 0.0, False)
        p, at = start_in_middle(first, second, linear, pairs.stop), pairs.starts[index, 3]
        for i in range(len(p)):
            permutations[at + i] = p[i]


@compile_loop
def explore(pairs: Pairs, chosen: Index, permutations: Index, steps: Index, taken: Index) -> None:
    """Exchange search, so many steps for each pair."""
    for index in chosen:
        a, b, unary, weight = read_pair(pairs, index)
        first, second, linear, even = state(a, b, unary, weight, 0.0, False)
        at, n, m, most = pairs.starts[index, 3], len(a), len(b), steps[index]
        p = permutations[at : at + m]
        taken[index] += improve(first, second, linear, even, p, most, most, n, m, pairs.stop)


@compile_loop
def explore_partial(
    pairs: Pairs, chosen: Index, permutations: Index, threshold: float, rounds: int, taken: Index
) -> None:
    """Drop and change partners of a full match while a partial one has a better objective; m: no partner."""
    for index in chosen:
        a, b, unary, weight = read_pair(pairs, index)
        first, second, linear, even = state(a, b, unary, weight, threshold, False)
        at, n, m = pairs.starts[index, 3], len(a), len(b)
        p = np.empty(n + m, np.int64)
        for k in range(m):
            p[n + k] = k
        for i in range(n):
            k = permutations[at + i]
            p[i], p[n + k] = k, m + i
        most = rounds * (n + m)
        made = improve(first, second, linear, even, p, most, most, n + m, n + m, pairs.stop)
        taken[index] += made
        objective = evaluate(first, permute(second, p), linear, p)
        for i in range(n):
            permutations[at + i] = p[i] if objective > 0 and p[i] < m else m  # the best may be worse than none


@compile_loop
def enumerate_all(pairs: Pairs, chosen: Index, permutations: Index) -> None:
    """The best of all permutations."""
    for index in chosen:
        if pairs.stop[0] != 0:
            return
        a, b, unary, weight = read_pair(pairs, index)
        first, second, linear, _ = state(a, b, unary, weight, 0.0, True)
        at = pairs.starts[index, 3]
        search_all(first, second, linear, permutations[at : at + len(b)])


def relax_all(
    pairs: Pairs, chosen: Index, permutations: Index, temperature: float, led: Flags, taken: Index, deadline: float
) -> None:
    """Relax from the middle at the temperature, then without one, and round; not compiled: products are."""
    for index in chosen.tolist():
        a, b, linear, weight = read_pair(pairs, index)
        given = linear if linear.size else None
        columns, steps = relax_pair(a, b, given, weight, temperature, bool(led[index]), deadline)
        at, m = pairs.starts[index, 3], len(b)
        permutations[at : at + m] = np.concatenate((columns, np.setdiff1d(np.arange(m), columns)))
        taken[index] += steps
