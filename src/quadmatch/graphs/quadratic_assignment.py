"""Quadratic assignment with scipy's call and result: change the import, nothing else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.graphs.assignment_methods import METHODS, Answer, Permutation, Task
from quadmatch.graphs.assignment_options import Settings, read_matrices, read_options
from quadmatch.graphs.interruption import hearing_ctrl_c

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


@hearing_ctrl_c()
def quadratic_assignment(
    A: Any, B: Any, method: str = "auto", options: Mapping[str, Any] | None = None
) -> OptimizeResult:
    """Find a permutation p that makes Σ A_ij B_p(i)p(j) = trace(Aᵀ P B Pᵀ) small, or large with `maximize`.

    `A` and `B` are n×n array-likes; they may be asymmetric and have a diagonal.
    `method`: "auto" relaxes and searches, "tabu" (or "local_search") only searches, "faq" and "2opt" are
    scipy's, "soft" relaxes with soft steps, for noisy copies of a graph ("frank_wolfe" is its older name).
    `options`: scipy's `maximize`, `partial_match`, `rng`, `P0`, `shuffle_input`, `maxiter`, `tol` and
    `partial_guess`; also `quality` ("fast", "standard" or "best"), `starts` (how many permutations a search
    begins with: its time grows in proportion) and `time_limit` (seconds, after which the best so far is
    returned). The result has `col_ind` (p), `fun` (the objective), `nit` (rounds of the first relaxation, else
    steps of the search) and `steps` (of the search).
    """
    from scipy.optimize import OptimizeResult

    solve = METHODS.get(method.lower()) if isinstance(method, str) else None
    if solve is None:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    source, target = read_matrices(A, B)
    settings = read_options(method.lower(), dict(options or {}), len(source))
    seeds = settings.partial_match
    free = [np.setdiff1d(np.arange(len(source)), seeds[:, side]) for side in (0, 1)]
    if settings.shuffle_input:
        free[1] = settings.rng.permutation(free[1])
    columns = np.empty(len(source), np.int64)
    columns[seeds[:, 0]] = seeds[:, 1]
    answer = Answer(np.arange(len(free[0])))
    if len(free[0]) > 1:
        answer = solve(make_task(source, target, free, settings))
    columns[free[0]] = free[1][answer.permutation]
    objective = (source * target[columns][:, columns]).sum()
    return OptimizeResult(col_ind=columns, fun=objective, nit=answer.rounds, steps=answer.steps)


def make_task(source: NDArray[Any], target: NDArray[Any], free: list[Permutation], settings: Settings) -> Task:
    """Turn the seeds into a linear term over the nodes that are free."""
    from quadmatch.solvers.search.units import scale_matrices

    seeds = settings.partial_match
    # This way of indexing gives matrices the layout they have in scipy, and with it the same rounding.
    orders = [np.concatenate([seeds[:, side], free[side]]) for side in (0, 1)]
    source, target = (m[order][:, order] for m, order in zip((source, target), orders))
    source, target = scale_matrices((-source if settings.maximize else source, target))
    k = len(seeds)
    left, right = source.astype(float), target.astype(float)
    linear = left[k:, :k] @ right[k:, :k].T + left[:k, k:].T @ right[:k, k:]
    guess = None
    if settings.partial_guess is not None:
        guess = complete_guess(settings.partial_guess, free, settings.rng)
    if settings.time_limit < np.inf:
        from quadmatch.solvers.search.local_search import compile_search

        compile_search()
    deadline = time.perf_counter() + settings.time_limit
    return Task(source[k:, k:], target[k:, k:], linear, guess, settings, deadline)


def complete_guess(pairs: Permutation, free: list[Permutation], rng: np.random.Generator) -> Permutation:
    """A permutation of the free nodes with the guessed pairs that the seeds leave possible, else random."""
    n = len(free[0])
    places = [{node: place for place, node in enumerate(nodes.tolist())} for nodes in free]
    guess = np.full(n, -1)
    for left, right in pairs.tolist():
        if left in places[0] and right in places[1]:
            guess[places[0][left]] = places[1][right]
    guess[guess < 0] = rng.permutation(np.setdiff1d(np.arange(n), guess))
    return guess
