"""Which stage is tried on which pair, and in what order; `docs/match-graphs.md` says it in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quadmatch.solvers.compilation import call_stoppably, run_uncompiled, stopping
from quadmatch.solvers.search.pairs import Pairs, measure_pairs, read_pair
from quadmatch.solvers.search.problem import Flags, Index, Vector
from quadmatch.solvers.search.pruning import prune
from quadmatch.solvers.search.stages import (
    enumerate_all,
    explore,
    explore_partial,
    relax_all,
    start_alike,
    start_inside,
    start_linear,
)

SMALL, LARGE, SEVERAL, POLISHED = 20, 300, 1500, 3000
"""Nodes up to which exchange alone is enough, every stage is worth its time, and, beyond, several
relaxations and any exchange are."""
EXACT, EXACT_BEST = 6, 10
"""Nodes up to which every permutation is considered, at standard quality and at the best."""
TEMPERATURES = (0.5, 1.0, 0.25)
"""Relative to the spread of the gradient: hot relaxations cope with noise, cold ones with few edges."""
ROUNDS, ROUNDS_UNEQUAL, ROUNDS_PARTIAL, ROUNDS_BEST = 0.75, 5.0, 3, 100
"""Steps of exchange for each node: of graphs of one size and of two, in partial matches, at the best quality."""
Report = Callable[[str], None]
"""Hears what is being done, in words."""
LONG = 3 * 10**6
"""Sum of cubed sizes from which a stage may take so long that it must hear Ctrl-C; less at the best quality."""


@dataclass
class Found:
    """What a search has for each pair so far, laid end to end."""

    permutations: Index
    """A partner from m on is none."""
    scores: Vector
    objectives: Vector
    steps: Index
    converged: Flags
    """False where time or steps ran out."""

    @classmethod
    def begin(cls, pairs: Pairs) -> Found:
        """Nodes matched in their order: what there is before any search."""
        large = pairs.sizes[:, 1]
        length, count = int(large.sum()), len(large)
        order = np.arange(length) - np.repeat(pairs.starts[:, 3], large)
        return cls(order, np.zeros(length), np.zeros(count), np.zeros(count, np.int64), np.ones(count, bool))


def search(
    pairs: Pairs, threshold: float, quality: str, *, deadline: float = np.inf, report: Report = lambda step: None
) -> Found:
    """The match of each pair; a threshold above zero allows partial matches.

    `quality` "fast" relaxes only where there is no other start, "best" has many times as many steps. At the
    `deadline`, a value of `time.perf_counter()`, the best so far is returned. `report` hears what is being done.
    """
    found = Found.begin(pairs)
    with stopping(deadline, pairs.stop):
        _match_all(pairs, quality, found, deadline, report)
        if threshold > 0:
            report("leaving nodes alone that fit nothing")
            _leave_alone(pairs, threshold, quality, found)
        found.converged |= pairs.stop[0] == 0
    measure_pairs(pairs, found.permutations, threshold, found.objectives, found.scores)
    return found


def _match_all(pairs: Pairs, quality: str, found: Found, deadline: float, report: Report) -> None:
    """Match every node of the smaller graph; `found.converged` says where nothing better can be."""
    best, fast = quality == "best", quality == "fast"
    small, large = pairs.sizes.T
    p, alike, exact = found.permutations, np.zeros(len(large), bool), small == 0
    huge, edges_only = large > LARGE, not len(pairs.linears)
    by_rank = ~exact & (small == large) & edges_only
    report("looking for an isomorphism" if edges_only else "finding a start")
    _run(start_alike, by_rank, pairs, p, alike, exact)
    _run(start_inside, ~exact & ~huge & (small < large) & edges_only, pairs, p, exact)
    _run(start_linear, ~exact & ~huge & ~by_rank, pairs, p)
    steps = _allow_steps(small, large, best)
    report("exchanging nodes")
    _run(explore, ~exact & ~huge, pairs, p, steps, found.steps, best=best)
    # Pairs that look isomorphic but were not mapped are hard, and a perfect answer may exist: try it all.
    wide = ~exact & (huge | (((large > SMALL) | alike | best) & (not fast)))
    once = (large > (LARGE if fast else SEVERAL)) & (not best)
    _widen(pairs, wide, steps, once, found, deadline, report, best)
    _run(enumerate_all, ~exact & (large <= (EXACT_BEST if best else EXACT)), pairs, p, best=best)
    found.converged[:] = exact


def _leave_alone(pairs: Pairs, threshold: float, quality: str, found: Found) -> None:
    """Drop and change partners of full matches; where graphs are large or time is over, only drop."""
    small, large = pairs.sizes.T
    pruned = (small > 0) & ((large > LARGE) | (pairs.stop[0] != 0))
    best, kept = quality == "best", (small > 0) & ~pruned
    rounds = ROUNDS_BEST if best else ROUNDS_PARTIAL
    _run(explore_partial, kept, pairs, found.permutations, threshold, rounds, found.steps, best=best)
    for index in np.flatnonzero(pruned).tolist():
        a, b, linear, weight = read_pair(pairs, index)
        matched = found.permutations[pairs.starts[index, 3] :][: len(a)]
        matched[:] = prune(a, b, linear if linear.size else None, weight, threshold, matched)


def _allow_steps(small: Index, large: Index, best: bool) -> Index:
    """Steps of exchange for each pair; above LARGE only those that gain."""
    rounds = np.full(len(large), float(ROUNDS_BEST if best else ROUNDS))
    # A part has many positions in the whole: more steps find more of them.
    rounds[(small < large) & (large <= SMALL)] = max(ROUNDS_BEST if best else 0, ROUNDS_UNEQUAL)
    rounds[large > LARGE] = 0
    return (rounds * large).astype(np.int64)


def _run(stage: Callable[..., None], flags: Flags, pairs: Pairs, *rest: object, best: bool = False) -> None:
    """A stage on the pairs marked, and not compiled while there are none; nothing once the search is to stop.

    Above SMALL nodes a pair takes longer than Python's loop over pairs: only the parts are compiled then.
    """
    small = pairs.sizes[:, 1] <= SMALL
    for chosen, loop in ((flags & small, stage), (flags & ~small, run_uncompiled(stage))):
        if chosen.any() and not pairs.stop[0]:
            long = int((pairs.sizes[chosen, 1] ** 3).sum()) * (ROUNDS_BEST if best else 1) > LONG
            call_stoppably(loop, pairs.stop, pairs, np.flatnonzero(chosen), *rest, long=long)


def _widen(
    pairs: Pairs, flags: Flags, steps: Index, once: Flags, found: Found, deadline: float, report: Report, best: bool
) -> None:
    """Relax at each temperature (or only `once`), polish, and keep what is better than what was found."""
    if not flags.any():
        return
    large = pairs.sizes[:, 1]
    led = (large > LARGE) & (len(pairs.linears) > 0)
    measure_pairs(pairs, found.permutations, 0.0, found.objectives, found.scores)
    found.objectives[flags & (large > LARGE)] = np.inf
    objectives, scores = np.empty_like(found.objectives), np.empty_like(found.scores)
    for temperature in TEMPERATURES:
        tried = flags if temperature == TEMPERATURES[0] else flags & ~(once | led)
        if pairs.stop[0]:
            tried = tried & np.isinf(found.objectives)  # only those that have nothing yet
        report(f"relaxing {int(tried.sum())} of {len(tried)} pairs at temperature {temperature}")
        trial = found.permutations.copy()
        relax_all(pairs, np.flatnonzero(tried), trial, temperature, led, found.steps, deadline)
        report("exchanging nodes")
        _run(explore, tried & (large <= POLISHED), pairs, trial, steps, found.steps, best=best)
        measure_pairs(pairs, trial, 0.0, objectives, scores)
        better = tried & (objectives < found.objectives)
        found.objectives[better] = objectives[better]
        moved = np.repeat(better, large)
        found.permutations[moved] = trial[moved]
