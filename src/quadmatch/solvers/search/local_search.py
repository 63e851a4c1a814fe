"""From any permutations to an excellent one, for quadratic assignment of dense matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from quadmatch.solvers.compilation import call_stoppably, stopping
from quadmatch.solvers.search.backtracking import search_all
from quadmatch.solvers.search.exchange import improve
from quadmatch.solvers.search.population import Population, evolve
from quadmatch.solvers.search.problem import Problem, state
from quadmatch.solvers.search.relaxation import choose_best, scale_rows

FEW = 7
"""Nodes up to which all permutations are considered, in less time than one relaxation takes."""
POPULATION = 16
"""Members of a population at most; more starts than this follow one another."""


@dataclass(frozen=True)
class Refinement:
    """The best permutation found and how many steps of exchange that took."""

    permutation: Int[ndarray, " n"]
    steps: int


@dataclass(frozen=True)
class Assignment:
    """min Σ A_ij B_p(i)p(j) + Σ C_ip(i) with no entry above one: by powers of two, which round nothing."""

    source: Float[ndarray, "n n"]
    target: Float[ndarray, "n n"]
    linear: Float[ndarray, "n n"]

    @classmethod
    def scale_down(
        cls, source: Float[ndarray, "n n"], target: Float[ndarray, "n n"], linear: Float[ndarray, "n n"] | None = None
    ) -> Assignment:
        """The same problem in numbers whose products cannot overflow."""
        linear = np.zeros_like(source) if linear is None else linear
        own, other, all_linear = (int(np.frexp(np.abs(m).max(initial=0.0))[1]) for m in (source, target, linear))
        largest = max(own + other, all_linear)
        return cls(np.ldexp(source, other - largest), np.ldexp(target, -other), np.ldexp(linear, -largest))

    @property
    def tolerance(self) -> float:
        """A difference of objectives must be larger to count."""
        sums = (float(np.abs(m).sum()) for m in (self.source, self.target, self.linear))
        own, other, linear = sums
        return 1e-14 * (own * other / max(len(self.source), 1) + linear)

    def state(self) -> Problem:
        """As the loops' problem, which maximises; the diagonals are part of its linear term."""
        diagonals = np.outer(self.source.diagonal(), self.target.diagonal())
        others = ~np.eye(len(self.source), dtype=bool)
        return state(self.source * others, self.target * others, -self.linear - diagonals, -0.5, 0.0, False)

    def compute_bound(self) -> float:
        """No permutation costs less: rows of A meet rows of B in the best order (Gilmore 1962, Lawler 1963)."""
        n = len(self.source)
        others = ~np.eye(n, dtype=bool)
        left = np.sort(self.source[others].reshape(n, n - 1), axis=1)
        right = np.sort(self.target[others].reshape(n, n - 1), axis=1)[:, ::-1]
        least = left @ right.T + np.outer(self.source.diagonal(), self.target.diagonal()) + self.linear
        return float(least[np.arange(n), choose_best(least, least=True)].sum())


def local_search(
    source: Float[ndarray, "n n"],
    target: Float[ndarray, "n n"],
    given: Sequence[Int[ndarray, " n"]] = (),
    *,
    linear: Float[ndarray, "n n"] | None = None,
    starts: int = 16,
    steps: int = 2500,
    rng: np.random.Generator | None = None,
    deadline: float = np.inf,
) -> Refinement:
    """Minimise Σ A_ij B_p(i)p(j) + Σ C_ip(i) by exchange search from several starts, crossed with each other.

    The starts are the `given` permutations, then random ones; each is worth `steps` steps of O(n²). The
    result is never worse than a given permutation. `deadline` is a value of `time.perf_counter()`.
    """
    assignment = Assignment.scale_down(source, target, linear)
    n, problem = len(source), assignment.state()
    if n <= FEW:
        best = np.arange(n)
        if n:
            search_all(*problem[:3], best)
        return Refinement(best, 0)
    population = Population(max(min(starts, POPULATION), len(given)), [np.array(p, np.int64) for p in given])
    budget, goal = max(starts, len(given)) * steps, -assignment.compute_bound()
    with stopping(deadline) as stop:
        rng = np.random.default_rng(rng)
        spent = evolve(problem, population, budget, goal, assignment.tolerance, stop, rng)
    return Refinement(population.best, spent)


def exchange_pairs(
    source: Float[ndarray, "n n"],
    target: Float[ndarray, "n n"],
    start: Int[ndarray, " n"],
    *,
    linear: Float[ndarray, "n n"] | None = None,
    deadline: float = np.inf,
) -> Refinement:
    """The plain descent: the best exchange of two nodes, as long as one makes the start better."""
    problem, best = Assignment.scale_down(source, target, linear).state(), np.array(start, np.int64)
    n = len(best)
    with stopping(deadline) as stop:
        steps = call_stoppably(improve, stop, *problem, best, 0, 0, n, 1, stop)
    return Refinement(best, steps)


@cache
def compile_search() -> None:
    """Compile, or load what was compiled before, so that it does not count against a time limit."""
    for n in (2, FEW + 1):
        source, target = np.random.default_rng(0).random((2, n, n))
        local_search(source, target, starts=1, steps=1)
    scale_rows(source, np.zeros(1, np.int64))
