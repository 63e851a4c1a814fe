"""The methods of `quadratic_assignment`, each from a task to a permutation and how many rounds that took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.graphs.assignment_options import Settings

Matrix = NDArray[np.float64]
Permutation = NDArray[np.int64]

STARTS = {"fast": 6, "standard": 10, "best": 16}  # permutations that the search begins with, by default
STEPS = {"fast": 360, "standard": 1000, "best": 2500}  # steps of exchange search that each of them is worth
WORK = 1e9  # bound on steps × n² of all usual starts: the search of very large matrices takes seconds
RELAXATION = 5e-9  # seconds × n⁻³ that a round of relaxation may take
LARGE = 1000  # nodes above which "auto" relaxes in fewer rounds: all take no longer than 30 at this size
SOFT_STARTS = 6  # further soft relaxations where the first beat the hard one
TEMPERATURE, HOT = 0.5, 1.0  # of soft relaxations, relative to the spread of the gradient
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

    def choose(self, answers: list[Answer]) -> Permutation:
        """The permutation with the least objective, the first if several have it."""
        return min((answer.permutation for answer in answers), key=self.evaluate)

    def evaluate(self, permutation: Permutation) -> float:
        """The objective, from scratch."""
        arranged = self.target[permutation][:, permutation]
        return float((self.source * arranged).sum() + self.linear[np.arange(len(self)), permutation].sum())


@dataclass(frozen=True)
class Answer:
    """A permutation, the rounds of relaxation and the steps of search that it took."""

    permutation: Permutation
    rounds: int = 0
    steps: int = 0


def relax(task: Task, soft: bool, start: str | Matrix, rounds: int | None = None, part: float = 1.0) -> Answer:
    """Frank–Wolfe from the middle ("barycenter"), near it ("randomized") or a matrix, in part of the time."""
    from quadmatch.solvers.search.faq import draw_relaxed, faq, make_barycenter

    settings = task.settings
    if isinstance(start, str):
        start = make_barycenter(len(task)) if start == "barycenter" else draw_relaxed(len(task), settings.rng)
    now, most = time.perf_counter(), rounds or settings.maxiter
    deadline = now + part * (task.deadline - now)
    if soft:
        from quadmatch.solvers.search.relaxation import RelaxedPair, choose_best, climb

        relaxed = np.array(start, float)
        pair = RelaxedPair(task.source.astype(float), task.target.astype(float), -task.linear, -0.5)
        taken = climb(pair, relaxed, TEMPERATURE, most, deadline=deadline)
        return Answer(choose_best(relaxed), taken)
    found = faq(
        task.source, task.target, task.linear, start, iterations=most, tolerance=settings.tol, deadline=deadline
    )
    return Answer(*found)


def relax_hot(task: Task) -> Answer:
    """From the middle with very soft steps, then hard ones, as `match_graphs` does: best for large noisy copies."""
    from quadmatch.solvers.search.relaxation import relax_pair

    deadline = (time.perf_counter() + task.deadline) / 2
    graphs = task.source.astype(float), task.target.astype(float)
    return Answer(*relax_pair(*graphs, -task.linear, -0.5, HOT, False, deadline))


def solve_faq(task: Task) -> Answer:
    """scipy's method of the same name."""
    return relax(task, False, task.settings.P0)


def solve_exchanges(task: Task) -> Answer:
    """Descent by exchanges from the guess, or from a random permutation; rounds are exchanges looked at."""
    from quadmatch.solvers.search.local_search import exchange_pairs

    n = len(task)
    start = task.settings.rng.permutation(n) if task.guess is None else task.guess
    source, target = task.source.astype(float), task.target.astype(float)
    found = exchange_pairs(source, target, start, linear=task.linear, deadline=task.deadline)
    # As scipy counts: all of them, with those of a node with itself.
    return Answer(found.permutation, found.steps * n * (n + 1) // 2, found.steps)


def solve_soft(task: Task) -> Answer:
    """The best of several soft relaxations: one from the middle, the others from near it."""
    answers = [relax(task, True, task.settings.P0)]
    for _ in range((task.settings.starts or STARTS[task.settings.quality]) - 1):
        if time.perf_counter() > task.deadline:
            break
        answers.append(relax(task, True, "randomized"))
    return Answer(task.choose(answers), sum(answer.rounds for answer in answers))


def solve_search(task: Task) -> Answer:
    """Exchange search in a population of random permutations and the guess."""
    found = search(task, [])
    return Answer(found.permutation, found.steps, found.steps)


def solve_any(task: Task) -> Answer:
    """Relaxations, the kind that did better several times; then the search from all of them.

    Rounds are those of the first relaxation, as scipy's default counts them.
    """
    from quadmatch.solvers.search.local_search import FEW

    n, settings = len(task), task.settings
    most = settings.maxiter if n <= LARGE else min(settings.maxiter, max(3, int(30 * (LARGE / n) ** 3)))
    given: list[Answer] = []

    def add(relaxation: Callable[..., Answer], *rest: Any, **options: Any) -> None:
        if time.perf_counter() + RELAXATION * n**3 < task.deadline:
            given.append(relaxation(task, *rest, **options))

    if n > FEW:
        limits: Any = {"rounds": most, "part": 0.5}
        add(relax, False, "barycenter", **limits)
        if not isinstance(settings.P0, str) or settings.P0 == "randomized":
            add(relax, False, settings.P0, **limits)
        if settings.quality != "fast" and n**3 < WORK:
            add(relax, True, "barycenter", **limits)
            if len(given) > 1 and task.choose(given) is given[-1].permutation:
                add(relax_hot)
                for _ in range(1, int(SOFT_STARTS * min(1, (MANY / n) ** 2))):
                    add(relax, True, "randomized", **limits)
    found = search(task, given)
    return Answer(found.permutation, given[0].rounds if given else 0, found.steps)


def search(task: Task, answers: list[Answer]) -> Answer:
    """The best permutation of the search and of those given to it."""
    from quadmatch.solvers.search.local_search import local_search

    settings = task.settings
    answers = answers if task.guess is None else [Answer(task.guess), *answers]
    usual = STARTS[settings.quality]
    found = local_search(
        task.source.astype(float),
        task.target.astype(float),
        [answer.permutation for answer in answers],
        linear=task.linear,
        starts=settings.starts or usual,
        steps=max(1, int(min(STEPS[settings.quality], WORK / len(task) ** 2 / usual))),
        rng=settings.rng,
        deadline=task.deadline,
    )
    return Answer(task.choose([Answer(found.permutation), *answers]), steps=found.steps)


METHODS: dict[str, Callable[[Task], Answer]] = {
    "auto": solve_any,
    "tabu": solve_search,
    "local_search": solve_search,
    "faq": solve_faq,
    "2opt": solve_exchanges,
    "soft": solve_soft,
    "frank_wolfe": solve_soft,  # its name until 0.1; in `match_graphs` that is a differentiable solver
}
