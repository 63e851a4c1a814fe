"""Frank–Wolfe with an entropic direction: towards a soft assignment (Sinkhorn) instead of the best hard one.

On noisy copies of a graph the hard directions of `faq` commit too early, and the soft ones find the copy
(A. Saad-Eldin et al., "Graph matching via optimal transport", 2021): qc-DGM's step at a low temperature.
"""

from __future__ import annotations

import time

import numpy as np
from jaxtyping import Float, Int, Real
from numpy import ndarray

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.exchanges import Matrix

SHARPNESS = 100.0  # one over the temperature, for a gradient whose largest entry is one


@compile_loop
def project(weights: Matrix, rounds: int) -> None:
    """Scale rows and columns in turn until both nearly sum to one."""
    n = len(weights)
    rows, columns = np.ones(n), np.ones(n)
    for _ in range(rounds):
        columns[:] = 0.0
        for i in range(n):
            for j in range(n):
                columns[j] += rows[i] * weights[i, j]
        for j in range(n):
            columns[j] = 1.0 / columns[j]
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += weights[i, j] * columns[j]
            rows[i] = 1.0 / total
    for i in range(n):
        for j in range(n):
            weights[i, j] *= rows[i] * columns[j]


def differentiate(
    source: Float[ndarray, "n n"], target: Float[ndarray, "n n"], at: Float[ndarray, "n n"], symmetric: bool
) -> Float[ndarray, "n n"]:
    """Gradient of the quadratic term: A P Bᵀ + Aᵀ P B, one product where both matrices are symmetric."""
    there: ndarray = source @ at @ target.T
    return 2 * there if symmetric else there + source.T @ at @ target


def step_softly(
    source: Float[ndarray, "n n"],
    target: Float[ndarray, "n n"],
    linear: Float[ndarray, "n n"],
    relaxed: Float[ndarray, "n n"],
    quadratic: Float[ndarray, "n n"],
    symmetric: bool,
) -> float:
    """Move `relaxed`, n ≥ 1, to a lower f(P) = Σ A∘(P B Pᵀ) + Σ C∘P; how far it moved.

    `quadratic`, the gradient of the first term, moves with it: no product is computed twice.
    """
    gradient = linear + quadratic
    largest = np.abs(gradient).max()
    if largest == 0:
        return 0.0
    direction = np.exp((gradient.min(axis=1, keepdims=True) - gradient) * (SHARPNESS / largest))
    project(direction, 25)
    direction -= relaxed
    slope = (gradient * direction).sum()
    turn = differentiate(source, target, direction, symmetric)
    bend = (turn * direction).sum() / 2
    length = min(1.0, max(0.0, -slope / (2 * bend))) if bend > 0 else float(slope + bend < 0)
    relaxed += length * direction
    quadratic += length * turn
    return float(length * np.linalg.norm(direction) / np.sqrt(len(relaxed)))


def relax_softly(
    source: Real[ndarray, "n n"],
    target: Real[ndarray, "n n"],
    linear: Float[ndarray, "n n"],
    start: Float[ndarray, "n n"],
    *,
    iterations: int = 30,
    tolerance: float = 0.005,
    deadline: float = np.inf,
) -> tuple[Int[ndarray, " n"], int]:
    """The permutation nearest to the last relaxed one, and how many rounds it took."""
    from scipy.optimize import linear_sum_assignment

    left, right, constant = (np.ascontiguousarray(m, float) for m in (source, target, linear))
    symmetric = bool(np.array_equal(left, left.T) and np.array_equal(right, right.T))
    relaxed, rounds, moved = np.array(start, float), 0, np.inf
    quadratic = differentiate(left, right, relaxed, symmetric)
    while rounds < iterations and moved >= tolerance and (rounds == 0 or time.perf_counter() < deadline):
        rounds += 1
        moved = step_softly(left, right, constant, relaxed, quadratic, symmetric)
    return linear_sum_assignment(relaxed, maximize=True)[1], rounds
