"""Relaxation: Frank–Wolfe over doubly stochastic matrices, with entropic or exact directions.

    maximise  f(X) = ⟨F, X B Xᵀ⟩ − charge + ⟨L, X⟩,   F = 2·weight·A

J. T. Vogelstein et al., "Fast approximate quadratic programming for graph matching", PLoS ONE 10, 2015, with
the linear step replaced by Sinkhorn as in qc-DGM: on noisy copies of a graph hard directions commit too early
(A. Saad-Eldin et al., "Graph matching via optimal transport", 2021). The temperature is relative to the
spread of the gradient after row and column means are taken away, which change no direction: so neither the
weight, the density of the graphs nor the complement of both changes what a temperature means. Matrices are
n × m, n ≤ m, without added rows; where edges are few, products are sparse and nothing is larger than m × m.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from quadmatch.solvers.compilation import call_abandoning, call_stoppably, compile_loop
from quadmatch.solvers.search.middle import choose
from quadmatch.solvers.search.problem import Index, Matrix

SCALINGS = 100
"""Row and column scalings of a direction, at most."""
TOLERANCE = 1e-3
"""Error of a row sum at which a direction is exact enough."""
SPARSE, LARGE = 0.05, 100
"""Share of edges below which, and nodes above which, sparse products are faster."""
WARM = (0.25, 0.5)
"""Shares of the weight in the first steps where a linear term leads: edges do not lock its errors in."""
STEPS_SOFT, STEPS_HARD = 30, 40
MANY = 400
"""Nodes from which an assignment or a direction may take so long that it must hear Ctrl-C."""


class RelaxedPair:
    """f(X) of a pair with n ≤ m nodes; where m is larger, weight·(squares of B's chosen edges) is the charge."""

    def __init__(self, a: Matrix, b: Matrix, linear: Matrix | None, weight: float) -> None:
        self.source, self.target = _compress(2 * weight * a), _compress(b)
        self.squares = _compress(weight * (b * b + (b * b).T)) if len(a) < len(b) else None
        self.linear = linear
        self.symmetric = bool(np.array_equal(a, a.T) and np.array_equal(b, b.T))
        self.shape = (len(a), len(b))

    def multiply(self, x: Matrix) -> Matrix:
        """Gradient of the quadratic term at X: F X Bᵀ + Fᵀ X B, less the charge."""
        total = np.asarray(self.source @ (self.target @ x.T).T)
        total = 2 * total if self.symmetric else total + self.source.T @ (self.target.T @ x.T).T
        if self.squares is not None:
            # A matrix of ones less the identity times X times the squares, without the matrix of ones.
            total -= (self.squares @ x.sum(0))[None, :] - (self.squares @ x.T).T
        return total

    def add_linear(self, quadratic: Matrix) -> Matrix:
        """The whole gradient."""
        return quadratic if self.linear is None else quadratic + self.linear


def _compress(matrix: Matrix) -> Any:
    if len(matrix) < LARGE or np.count_nonzero(matrix) > SPARSE * matrix.size:
        return matrix
    from scipy.sparse import csr_array

    return csr_array(matrix)


def choose_best(values: Matrix, *, least: bool = False) -> Index:
    """The column of each row in the assignment with the largest sum, or with the `least`."""
    from scipy.optimize import linear_sum_assignment

    long = max(values.shape) > MANY
    return np.asarray(call_abandoning(linear_sum_assignment, values, not least, long=long)[1])


def choose_parabola(slope: float, curvature: float) -> float:
    """The x in [0, 1] at which slope·x + curvature·x² is largest."""
    if curvature < 0:
        return min(max(-slope / (2 * curvature), 0.0), 1.0)
    return 1.0 if slope + curvature > 0 else 0.0


@compile_loop
def scale_rows(kernel: Matrix, stop: Index) -> None:
    """Scale rows and columns of a positive square matrix to sum one (Sinkhorn); `stop[0]` ends it early."""
    size = len(kernel)
    v, sums, u = np.ones(size), np.zeros(size), np.empty(size)
    for _ in range(SCALINGS):
        error = 0.0
        for j in range(size):
            sums[j] = 0
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += kernel[i, j] * v[j]
            u[i] = 1 / total
            for j in range(size):
                sums[j] += kernel[i, j] * u[i]
        for j in range(size):
            error = max(error, abs(sums[j] * v[j] - 1))
            v[j] = 1 / sums[j]
        if error < TOLERANCE or stop[0] != 0:
            break
    for i in range(size):
        for j in range(size):
            kernel[i, j] *= u[i] * v[j]


def spread_out(columns: Index, m: int) -> Matrix:
    """The matrix of a permutation."""
    x = np.zeros((len(columns), m))
    x[np.arange(len(columns)), columns] = 1
    return x


def point(gradient: Matrix, temperature: float) -> Matrix:
    """Where the gradient points: Sinkhorn at the temperature, the best permutation at zero."""
    n, m = gradient.shape
    if temperature == 0:
        return spread_out(choose_best(gradient), m)
    kernel = np.zeros((m, m))
    kernel[:n] = gradient
    kernel -= kernel.mean(0)
    kernel -= kernel.mean(1, keepdims=True)
    deviation = float(np.linalg.norm(kernel)) / m
    kernel -= kernel.max(1, keepdims=True)
    kernel /= temperature * deviation + 1e-300
    np.exp(np.maximum(kernel, -300, out=kernel), out=kernel)
    stop = np.zeros(1, np.int64)
    call_stoppably(scale_rows, stop, kernel, stop, long=m > MANY)
    return kernel[:n]


def climb(
    pair: RelaxedPair,
    x: Matrix,
    temperature: float,
    steps: int,
    *,
    warm: tuple[float, ...] = (),
    deadline: float = np.inf,
) -> int:
    """Move X uphill in place by exact steps until it stays where it is; the number of steps.

    The first steps count the quadratic term by the shares in `warm`.
    """
    quadratic = pair.multiply(x)
    for step in range(steps):
        share = warm[step] if step < len(warm) else 1.0
        gradient = pair.add_linear(share * quadratic if share < 1 else quadratic)
        direction = point(gradient, temperature)
        bend = pair.multiply(direction) - quadratic
        direction -= x
        slope, curvature = float(np.vdot(gradient, direction)), share * float(np.vdot(bend, direction)) / 2
        length = choose_parabola(slope, curvature)
        direction *= length
        x += direction
        bend *= length
        quadratic += bend
        objective = float(np.vdot(x, pair.add_linear(quadratic / 2)))
        gained = length * (slope + length * curvature) > 1e-5 * abs(objective)
        if (share == 1 and not gained) or time.perf_counter() > deadline:
            return step + 1
    return steps


def relax_pair(
    a: Matrix, b: Matrix, linear: Matrix | None, weight: float, temperature: float, led: bool, deadline: float = np.inf
) -> tuple[Index, int]:
    """The target node of each source node, and the steps made, from the middle of all permutations.

    First softly at the temperature, then hard; if `led` by the linear term, hard at once. At the `deadline` it
    ends where it is, after one step at least, or if it is led with a good assignment in place of the best.
    """
    pair = RelaxedPair(a, b, linear, weight)
    n, m = pair.shape
    x = np.full((n, m), 1 / m)
    if led:
        middle, taken = pair.add_linear(pair.multiply(x)), 0
        over = time.perf_counter() > deadline
        x = spread_out(choose(middle, np.ones(1, np.int64)) if over else choose_best(middle), m)
    else:
        taken = climb(pair, x, temperature, STEPS_SOFT, deadline=deadline)
    if time.perf_counter() < deadline:
        taken += climb(pair, x, 0.0, STEPS_HARD, warm=WARM if led else (), deadline=deadline)
    return choose_best(x), taken
