"""The stages of a search as compiled loops over chosen pairs; each reads and writes the pairs' permutations.

Stages are compiled one by one, when first needed: a program that only ever matches small graphs never waits
for the compilation of what large ones need.
"""

from __future__ import annotations

import numpy as np

from quadmatch.search.backtracking import search_all
from quadmatch.search.exchange import improve
from quadmatch.search.isomorphism import find_isomorphism
from quadmatch.search.pairs import Pairs, read_pair
from quadmatch.search.problem import Flags, Index, evaluate, state
from quadmatch.search.relaxation import choose, multiply, relax
from quadmatch.search.start import describe_nodes, pair_by_rank
from quadmatch.solvers.compilation import compile_loop


@compile_loop
def start_alike(pairs: Pairs, chosen: Index, permutations: Index, alike: Flags, exact: Flags) -> None:
    """Nodes of equal rank go together; where all of them look alike, an isomorphism is looked for."""
    for place in chosen:
        a, b, _, _ = read_pair(pairs, place)
        at = pairs.starts[place, 3]
        p = permutations[at : at + len(b)]
        keys_a, keys_b = describe_nodes(a, b)
        alike[place] = pair_by_rank(keys_a, keys_b, p)
        if alike[place]:
            q = np.empty(len(p), np.int64)
            exact[place] = find_isomorphism(a, b, keys_a, keys_b, q, 1000 + 20 * len(p))
            if exact[place]:
                for i in range(len(p)):
                    p[i] = q[i]


@compile_loop
def start_inside(pairs: Pairs, chosen: Index, permutations: Index, exact: Flags) -> None:
    """Look for the smaller graph as it is inside the larger; few steps show most weighted ones."""
    for place in chosen:
        a, b, _, _ = read_pair(pairs, place)
        at, n, m = pairs.starts[place, 3], len(a), len(b)
        q, used = np.empty(n, np.int64), np.zeros(m, np.bool_)
        exact[place] = find_isomorphism(a, b, np.zeros(n), np.zeros(m), q, 4 * m + 400000 // (m * m))
        if exact[place]:
            for i in range(n):
                permutations[at + i], used[q[i]] = q[i], True
            for k in range(m):
                if not used[k]:
                    permutations[at + n], n = k, n + 1


@compile_loop
def start_linear(pairs: Pairs, chosen: Index, permutations: Index) -> None:
    """The best permutation for the gradient in the middle of all permutations."""
    for place in chosen:
        a, b, linear, weight = read_pair(pairs, place)
        at, size = pairs.starts[place, 3], len(b)
        first, second, worth = state(a, b, linear, weight, 0.0)
        q = choose(multiply(first, second, np.full((size, size), 1 / size)) + worth)
        for i in range(size):
            permutations[at + i] = q[i]


@compile_loop
def explore(pairs: Pairs, chosen: Index, permutations: Index, rounds: float, taken: Index) -> None:
    """Exchange search, `rounds` times as many steps as there are places."""
    for place in chosen:
        a, b, linear, weight = read_pair(pairs, place)
        at = pairs.starts[place, 3]
        first, second, worth = state(a, b, linear, weight, 0.0)
        p = permutations[at : at + len(b)]
        taken[place] += improve(first, second, worth, p, int(rounds * len(b)), len(a))


@compile_loop
def explore_partial(
    pairs: Pairs, chosen: Index, permutations: Index, threshold: float, rounds: int, taken: Index
) -> None:
    """Drop and change partners of a full match until it is worth most as a partial one; m: no partner."""
    for place in chosen:
        a, b, linear, weight = read_pair(pairs, place)
        at, n, m = pairs.starts[place, 3], len(a), len(b)
        first, second, worth = state(a, b, linear, weight, threshold)
        p = np.empty(n + m, np.int64)
        for k in range(m):
            p[n + k] = k
        for i in range(n):
            k = permutations[at + i]
            p[i], p[n + k] = k, m + i
        taken[place] += improve(first, second, worth, p, rounds * (n + m), n + m)
        # Even the best of these may be worth less than no match at all.
        worthwhile = evaluate(first, second, worth, p) > 0
        for i in range(n):
            permutations[at + i] = p[i] if worthwhile and p[i] < m else m


@compile_loop
def enumerate_all(pairs: Pairs, chosen: Index, permutations: Index) -> None:
    """The best of all permutations."""
    for place in chosen:
        a, b, linear, weight = read_pair(pairs, place)
        at = pairs.starts[place, 3]
        first, second, worth = state(a, b, linear, weight, 0.0, True)
        p = permutations[at : at + len(b)]
        search_all(first, second, worth, p, evaluate(first, second, worth, p))


@compile_loop
def relax_all(pairs: Pairs, chosen: Index, permutations: Index, temperature: float, taken: Index) -> None:
    """Relax from the middle at the temperature, then without one, and round."""
    for place in chosen:
        a, b, linear, weight = read_pair(pairs, place)
        at, size = pairs.starts[place, 3], len(b)
        first, second, worth = state(a, b, linear, weight, 0.0)
        x = np.full((size, size), 1 / size)
        for heat, steps in ((temperature, 40), (0.0, 20)):
            taken[place] += relax(first, second, worth, x, heat, steps)
        q = choose(x)
        for i in range(size):
            permutations[at + i] = q[i]
