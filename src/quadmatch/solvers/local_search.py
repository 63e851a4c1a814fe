"""From any permutations to an excellent one, for quadratic assignment of dense matrices."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from quadmatch.solvers.entropic import relax_softly
from quadmatch.solvers.enumeration import enumerate_all
from quadmatch.solvers.exchanges import BLOCK, Problem, State, Workspace, make_workspace
from quadmatch.solvers.population import evolve, make_population
from quadmatch.solvers.tabu import descend

FEW = 7  # up to so many nodes all permutations are tried: 5,040 of them take less time than one relaxation

POPULATION = 16  # more starts than this follow one another


@dataclass(frozen=True)
class Refinement:
    """The best permutation found and how many exchanges (or placements, for a few nodes) that took."""

    permutation: Int[ndarray, " n"]
    steps: int


def make_problem(
    source: Float[ndarray, "n n"], target: Float[ndarray, "n n"], linear: Float[ndarray, "n n"] | None = None
) -> Problem:
    """Prepare the loops' problem; if one matrix is symmetric the other can be made so at the same cost."""
    n = len(source)
    source, target, linear = scale_down(source, target, np.zeros((n, n)) if linear is None else linear)
    if np.array_equal(source, source.T):
        target = (target + target.T) / 2
    elif np.array_equal(target, target.T):
        source = (source + source.T) / 2
    symmetric = bool(np.array_equal(source, source.T) and np.array_equal(target, target.T))
    bends = [np.ascontiguousarray(m.diagonal()[:, None] + m.diagonal() - m - m.T) for m in (source, target)]
    padded = np.zeros((n, -(-n // BLOCK) * BLOCK))
    padded[:, :n] = source
    typical = np.abs(source).sum() * np.abs(target).sum() / max(n, 1) + np.abs(linear).sum()
    target, linear = np.ascontiguousarray(target), np.ascontiguousarray(linear)
    return Problem(padded, target, linear, bends[0], bends[1], symmetric, 1e-14 * float(typical))


def scale_down(
    source: Float[ndarray, "n n"], target: Float[ndarray, "n n"], linear: Float[ndarray, "n n"]
) -> list[Float[ndarray, "n n"]]:
    """The same problem with no entry above one; by powers of two, which round nothing."""
    own, other, all_linear = (int(np.frexp(np.abs(m).max(initial=0.0))[1]) for m in (source, target, linear))
    largest = max(own + other, all_linear)
    return [np.ldexp(source, other - largest), np.ldexp(target, -other), np.ldexp(linear, -largest)]


def compute_bound(problem: Problem) -> float:
    """No permutation costs less: rows of A meet rows of B in the best order (Gilmore 1962, Lawler 1963)."""
    from scipy.optimize import linear_sum_assignment

    n = len(problem.target)
    others = ~np.eye(n, dtype=bool)
    left = np.sort(problem.source[:, :n][others].reshape(n, n - 1), axis=1)
    right = np.sort(problem.target[others].reshape(n, n - 1), axis=1)[:, ::-1]
    least = left @ right.T + np.outer(problem.source.diagonal(), problem.target.diagonal()) + problem.linear
    return float(least[linear_sum_assignment(least)].sum())


def local_search(
    source: Float[ndarray, "n n"],
    target: Float[ndarray, "n n"],
    given: Int[ndarray, "k n"] | None = None,
    *,
    linear: Float[ndarray, "n n"] | None = None,
    starts: int = 16,
    steps: int = 2500,
    rng: np.random.Generator | None = None,
    deadline: float = np.inf,
) -> Refinement:
    """Minimise Σ A_ij B_p(i)p(j) + Σ C_ip(i) by tabu search from several starts, crossed with each other.

    The starts are the `given` permutations, then random ones; each is worth `steps` steps of O(n²). The
    result is never worse than a given permutation. `deadline` is a value of `time.perf_counter()`.
    """
    n = len(source)
    problem = make_problem(source, target, linear)
    given = np.empty((0, n), np.int64) if given is None else np.ascontiguousarray(given, np.int64)
    if n <= FEW:
        best = np.arange(n)
        return Refinement(best, enumerate_all(problem, best) if n else 0)
    population = make_population(max(min(starts, POPULATION), len(given)), given)
    work, budget = make_workspace(problem), max(starts, len(given)) * steps
    if not problem.symmetric:
        budget = budget * 2 // 3  # for each takes half as long again
    with stopping(work, deadline):
        spent = int(evolve(problem, work, population, budget, compute_bound(problem), draw_state(rng)))
    return Refinement(population.best, spent)


@contextmanager
def stopping(work: Workspace, deadline: float) -> Iterator[None]:
    """Tell a search inside to stop at the deadline: its loops run without Python's lock, so a timer can."""
    if deadline == np.inf:
        yield
        return
    timer = threading.Timer(max(0.0, deadline - time.perf_counter()), work.stop.fill, (1,))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def draw_state(rng: np.random.Generator | None) -> State:
    """The state of the compiled loops' own random numbers."""
    return np.random.default_rng(rng).integers(1, 2**63, 1, dtype=np.uint64)


def exchange_pairs(
    source: Float[ndarray, "n n"],
    target: Float[ndarray, "n n"],
    start: Int[ndarray, " n"],
    *,
    linear: Float[ndarray, "n n"] | None = None,
    rng: np.random.Generator | None = None,
    deadline: float = np.inf,
) -> Refinement:
    """The plain descent: the best exchange of two nodes, as long as one makes the start better."""
    problem, permutation = make_problem(source, target, linear), np.array(start, np.int64)
    work, steps = make_workspace(problem), 0
    if len(permutation) > 1:
        with stopping(work, deadline):
            steps = int(descend(problem, work, permutation, 2**62, draw_state(rng)))
    return Refinement(permutation, steps)


@cache
def compile_search() -> None:
    """Compile, or load what was compiled before, so that it does not count against a time limit."""
    few, more = (np.random.default_rng(0).random((n, n)) for n in (2, FEW + 1))
    local_search(few, few)
    local_search(more, more, steps=1)
    exchange_pairs(few, few, np.arange(2))
    relax_softly(few, few, few, few)
