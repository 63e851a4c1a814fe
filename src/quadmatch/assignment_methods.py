"""The methods of `quadratic_assignment`, each from a task to a permutation and how many rounds that took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.assignment_options import Settings

Matrix = NDArray[np.float64]
Permutation = NDArray[np.int64]

STARTS = {"fast": 6, "best": 16}  # permutations that the search begins with, unless `starts` says otherwise
STEPS = {"fast": 450, "best": 2500}  # steps of tabu search that each of them is worth
WORK = 3e9  # bound on steps × n² of all usual starts: the search of very large matrices takes seconds
RELAXATION = 5e-9  # seconds × n⁻³ that a round of relaxation may take
LARGE = 1000  # nodes above which "auto" relaxes in fewer rounds: all take no longer than 30 at this size
SOFT_STARTS = 6  # further soft relaxations where the first beat the hard one
MANY = 300  # nodes above which there are fewer of them, and none from about 735


@dataclass(frozen=True)
class Task:
    """What is left to assign once the seeds are: minimise Σ A_ij B_p(i)p(j) + Σ C_ip(i)."""

    source: NDArray[Any]  # integers stay integers, for the same rounding as scipy's
    target: NDArray[Any]
    linear: Matrix
    guess: Permutation | None
    settings: Settings
    deadline: float

    def __len__(self) -> int:
        return len(self.source)

    def compute_cost(self, permutation: Permutation) -> float:
        """The objective, from scratch."""
        arranged = self.target[permutation][:, permutation]
        return float((self.source * arranged).sum() + self.linear[np.arange(len(self)), permutation].sum())


def relax(
    task: Task, soft: bool, start: str | Matrix, rounds: int | None = None, part: float = 1.0
) -> tuple[Permutation, int]:
    """Frank–Wolfe from the middle ("barycenter"), near it ("randomized") or a matrix, in part of the time."""
    from quadmatch.solvers.faq import draw_relaxed, faq, make_barycenter

    settings = task.settings
    if isinstance(start, str):
        start = make_barycenter(len(task)) if start == "barycenter" else draw_relaxed(len(task), settings.rng)
    now = time.perf_counter()
    limits: Any = {"iterations": rounds or settings.maxiter, "deadline": now + part * (task.deadline - now)}
    if soft:
        from quadmatch.solvers.entropic import relax_softly

        return relax_softly(task.source, task.target, task.linear, start, **limits)
    return faq(task.source, task.target, task.linear, start, tolerance=settings.tol, **limits)


def solve_faq(task: Task) -> tuple[Permutation, int]:
    """scipy's method of the same name."""
    return relax(task, False, task.settings.P0)


def solve_exchanges(task: Task) -> tuple[Permutation, int]:
    """Descent by exchanges from the guess, or from a random permutation."""
    from quadmatch.solvers.local_search import exchange_pairs

    start = task.settings.rng.permutation(len(task)) if task.guess is None else task.guess
    source, target = task.source.astype(float), task.target.astype(float)
    found = exchange_pairs(
        source, target, start, linear=task.linear, rng=task.settings.rng, deadline=task.deadline
    )
    return found.permutation, found.steps


def solve_soft(task: Task) -> tuple[Permutation, int]:
    """The best of several soft relaxations: one from the middle, the others from near it."""
    best, rounds = relax(task, True, task.settings.P0)
    for _ in range((task.settings.starts or STARTS[task.settings.quality]) - 1):
        if time.perf_counter() > task.deadline:
            break
        other, more = relax(task, True, "randomized")
        best, rounds = min(best, other, key=task.compute_cost), rounds + more
    return best, rounds


def solve_search(task: Task) -> tuple[Permutation, int]:
    """Tabu search in a population of random permutations and the guess."""
    return search(task, [], 0)


def solve_any(task: Task) -> tuple[Permutation, int]:
    """Relaxations, the kind that did better several times; then the search from all of them."""
    from quadmatch.solvers.local_search import FEW

    n, settings = len(task), task.settings
    most = settings.maxiter if n <= LARGE else min(settings.maxiter, max(3, int(30 * (LARGE / n) ** 3)))
    given: list[Permutation] = []
    rounds = 0

    def add(soft: bool, start: str | Matrix) -> None:
        nonlocal rounds
        if time.perf_counter() + RELAXATION * n**3 < task.deadline:
            found, more = relax(task, soft, start, most, part=0.5)
            given.append(found)
            rounds += more

    if n > FEW:
        add(False, "barycenter")
        if not isinstance(settings.P0, str) or settings.P0 == "randomized":
            add(False, settings.P0)
        if settings.quality == "best" and n**3 < WORK:
            add(True, "barycenter")
            if len(given) > 1 and min(given, key=task.compute_cost) is given[-1]:
                for _ in range(int(SOFT_STARTS * min(1, (MANY / n) ** 2))):
                    add(True, "randomized")
    return search(task, given, rounds)


def search(task: Task, given: list[Permutation], rounds: int) -> tuple[Permutation, int]:
    """The best permutation of the search and of those given to it."""
    from quadmatch.solvers.local_search import local_search

    settings = task.settings
    given = given if task.guess is None else [task.guess, *given]
    usual = STARTS[settings.quality]
    found = local_search(
        task.source.astype(float),
        task.target.astype(float),
        np.stack(given) if given else None,
        linear=task.linear,
        starts=settings.starts or usual,
        steps=max(1, int(min(STEPS[settings.quality], WORK / len(task) ** 2 / usual))),
        rng=settings.rng,
        deadline=task.deadline,
    )
    return min([found.permutation, *given], key=task.compute_cost), rounds + found.steps


METHODS: dict[str, Callable[[Task], tuple[Permutation, int]]] = {
    "auto": solve_any,
    "tabu": solve_search,
    "local_search": solve_search,
    "faq": solve_faq,
    "2opt": solve_exchanges,
    "frank_wolfe": solve_soft,
}
