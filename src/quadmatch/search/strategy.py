"""Which stage is tried on which pair, and in what order; `docs/match-graphs.md` says it in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quadmatch.search.pairs import Pairs, measure_pairs, read_pair
from quadmatch.search.problem import Flags, Index, Matrix, Vector
from quadmatch.search.stages import (
    enumerate_all,
    explore,
    explore_partial,
    relax_all,
    start_alike,
    start_inside,
    start_linear,
)

SMALL, LARGE, POLISHED = 20, 300, 3000
"""Nodes up to which exchange alone is worth its time, dense products are, and any exchange is."""
EXACT, EXACT_BEST = 6, 10
"""Nodes up to which every permutation is considered, at standard quality and at the best."""
TEMPERATURES = (1.0, 0.5, 0.25)
"""Relative to the spread of the gradient: hot relaxations cope with noise, cold ones with few edges."""
ROUNDS, ROUNDS_UNEQUAL, ROUNDS_PARTIAL, ROUNDS_BEST = 0.75, 5.0, 3, 100
"""Steps of exchange for each node: of graphs of one size and of two, in partial matches, at the best quality."""


@dataclass
class Found:
    """What a search has for each pair so far, laid end to end."""

    permutations: Index
    """A partner from m on is none."""
    scores: Vector
    objectives: Vector
    steps: Index


def search(pairs: Pairs, threshold: float, best: bool) -> Found:
    """The match of each pair; a threshold above zero allows partial matches."""
    small, large = pairs.sizes.T
    length, count = int(large.sum()), len(large)
    found = Found(np.zeros(length, np.int64), np.zeros(length), np.zeros(count), np.zeros(count, np.int64))
    alike, exact = np.zeros(count, bool), small == 0
    by_rank = ~exact & (small == large) & (len(pairs.linears) == 0)
    unequal = ~exact & (small < large) & (len(pairs.linears) == 0)
    huge, rounds = large > LARGE, float(ROUNDS_BEST if best else ROUNDS)
    _run(start_alike, by_rank, pairs, found.permutations, alike, exact)
    _run(start_inside, unequal & ~huge, pairs, found.permutations, exact)
    _run(start_linear, ~exact & ~by_rank & ~huge, pairs, found.permutations)
    # A part has many places in the whole: more steps find more of them.
    more = ~exact & (small < large) & (large <= SMALL)
    _run(explore, more, pairs, found.permutations, max(rounds, ROUNDS_UNEQUAL), found.steps)
    _run(explore, ~exact & ~huge & ~more, pairs, found.permutations, rounds, found.steps)
    # Pairs that look isomorphic but were not mapped are hard, and a perfect answer may exist: try it all.
    _widen(pairs, ~exact & ~huge & ((large > SMALL) | alike | best), rounds, found)
    _run(enumerate_all, ~exact & (large <= (EXACT_BEST if best else EXACT)), pairs, found.permutations)
    if threshold > 0:
        more = ROUNDS_BEST if best else ROUNDS_PARTIAL
        _run(explore_partial, (small > 0) & ~huge, pairs, found.permutations, threshold, more, found.steps)
    for place in np.flatnonzero(huge & (small > 0)):
        _search_large(pairs, int(place), threshold, bool(exact[place]), best, found)
    measure_pairs(pairs, found.permutations, threshold, found.objectives, found.scores)
    return found


def _run(stage: Callable[..., None], flags: Flags, pairs: Pairs, *rest: object) -> None:
    """A stage on the pairs marked, and not compiled while there are none."""
    if flags.any():
        stage(pairs, np.flatnonzero(flags), *rest)


def _widen(pairs: Pairs, flags: Flags, rounds: float, found: Found) -> None:
    """Relax at each temperature, polish, and keep what is better than what was found."""
    if not flags.any():
        return
    places = np.flatnonzero(flags)
    measure_pairs(pairs, found.permutations, 0.0, found.objectives, found.scores)
    worth, scores = np.empty_like(found.objectives), np.empty_like(found.scores)
    for temperature in TEMPERATURES:
        trial = found.permutations.copy()
        relax_all(pairs, places, trial, temperature, found.steps)
        explore(pairs, places, trial, rounds, found.steps)
        measure_pairs(pairs, trial, 0.0, worth, scores)
        better = worth < found.objectives
        found.objectives[better] = worth[better]
        moved = np.repeat(better, pairs.sizes[:, 1])
        found.permutations[moved] = trial[moved]


def _search_large(pairs: Pairs, place: int, threshold: float, exact: bool, best: bool, found: Found) -> None:
    """As for smaller pairs, by sparse products and with exchanges only while they gain."""
    from quadmatch.search.large import match_large, prune

    a, b, linear, weight = read_pair(pairs, place)
    at, known = int(pairs.starts[place, 3]), linear if linear.size else None
    here, one = found.permutations[at : at + len(b)], np.array([place])
    if not exact:
        heats = TEMPERATURES if best or (known is None and len(b) <= POLISHED // 2) else TEMPERATURES[1:2]
        trials, worths = [], []
        for temperature in heats[: 1 if known is not None else None]:
            columns, steps = match_large(a, b, known, weight, temperature)
            here[:] = np.concatenate((columns, np.setdiff1d(np.arange(len(b)), columns)))
            found.steps[place] += steps
            if len(b) <= POLISHED:
                explore(pairs, one, found.permutations, 0.0, found.steps)
            worths.append(_worth(a, b, known, weight, here[: len(a)]))
            trials.append(here.copy())
        here[:] = trials[int(np.argmin(worths))]
    if threshold > 0:
        here[: len(a)] = prune(a, b, known, weight, threshold, here[: len(a)])


def _worth(a: Matrix, b: Matrix, linear: Matrix | None, weight: float, columns: Index) -> float:
    lost = weight * float(((a - b[np.ix_(columns, columns)]) ** 2).sum())
    return lost if linear is None else lost - float(linear[np.arange(len(a)), columns].sum())
