"""Compiled parts of one Frank–Wolfe step towards a permutation; imported when first asked for.

With W = XB, V = XBᵀ and Y = XBXᵀ at hand, the products of a permutation with B, W and V are rows and
columns of these in another order: the exact line search and the update of X, W, V and Y cost n² operations,
and only the gradient needs products of matrices. A permutation is a vector: the column of each row, −1 for
none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import FUSED, compile_loop

Matrix = NDArray[np.float64]
Order = NDArray[np.int64]


class Problem(NamedTuple):
    """A pair of graphs without padding, and what of it counts."""

    unary: Matrix
    source: Matrix
    target: Matrix
    weight: float
    masked: bool
    """Whether only edges of the source count."""
    symmetric: bool
    stop: Order
    """[1]: set to one from outside, it ends products that are being added up."""


class State(NamedTuple):
    """X and its products, all updated together."""

    x: Matrix
    there: Matrix
    """W = XB."""
    back: Matrix
    """V = XBᵀ; the same array as W where the graphs are symmetric."""
    image: Matrix
    """Y = XBXᵀ."""


@compile_loop()
def evaluate(order: Order, problem: Problem) -> float:
    """weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X of a permutation."""
    unary, source, target = problem.unary, problem.source, problem.target
    pairwise = single = 0.0
    for i in range(len(order)):
        if order[i] >= 0:
            single += unary[i, order[i]]
        for k in range(len(order)):
            if not problem.masked or source[i, k] != 0:
                met = target[order[i], order[k]] if order[i] >= 0 <= order[k] else 0.0
                pairwise += (source[i, k] - met) ** 2
    return problem.weight * pairwise - (1 - problem.weight) * single


@compile_loop()
def turn(matrix: Matrix) -> Matrix:
    """The transpose, in memory."""
    n, m = matrix.shape
    turned = np.empty((m, n))
    for i in range(n):
        for j in range(m):
            turned[j, i] = matrix[i, j]
    return turned


@compile_loop(fastmath=FUSED)
def add_product(left: Matrix, right: Matrix, result: Matrix, stop: Order) -> None:
    """result += left @ right, until it is to stop: a library call costs more where matrices are small."""
    n, common = left.shape
    m = right.shape[1]
    for i in range(n):
        if stop[0] != 0:
            return
        for k in range(0, common - 3, 4):
            # Four at a time: the row of the result is fetched a fourth as often.
            a, b, c, d = left[i, k], left[i, k + 1], left[i, k + 2], left[i, k + 3]
            for j in range(m):
                pair, other = a * right[k, j] + b * right[k + 1, j], c * right[k + 2, j] + d * right[k + 3, j]
                result[i, j] += pair + other
        for k in range(common - common % 4, common):
            a = left[i, k]
            for j in range(m):
                result[i, j] += a * right[k, j]


@compile_loop(fastmath=FUSED)
def fill_gradient(state: State, problem: Problem, residual: Matrix, gradient: Matrix) -> bool:
    """weight·(−2)(UᵀXB + UXBᵀ) − (1 − weight)·unary; False if numbers were too large for it."""
    n, m = gradient.shape
    factor = -4 * problem.weight if problem.symmetric else -2 * problem.weight
    for i in range(n):
        for k in range(n):
            counts = not problem.masked or problem.source[i, k] != 0
            residual[i, k] = factor * (problem.source[i, k] - state.image[i, k]) if counts else 0.0
        for j in range(m):
            gradient[i, j] = -(1 - problem.weight) * problem.unary[i, j]
    add_product(residual, state.back, gradient, problem.stop)
    if not problem.symmetric:
        add_product(turn(residual), state.there, gradient, problem.stop)
    zero = 0.0
    for i in range(n):
        for j in range(m):
            zero += gradient[i, j] * 0.0
    return zero == 0.0


@compile_loop(fastmath=FUSED)
def choose_step(state: State, order: Order, problem: Problem) -> float:
    """Exact minimum of the objective, a quartic, on the segment from X to a permutation."""
    n, m = state.x.shape
    source, target, weight = problem.source, problem.target, problem.weight
    rp = rq = pp = pq = qq = single = 0.0
    for i in range(n):
        for j in range(m):
            single -= problem.unary[i, j] * state.x[i, j]
        if order[i] >= 0:
            single += problem.unary[i, order[i]]
        for k in range(n):
            if problem.masked and source[i, k] == 0:
                continue
            here = state.image[i, k]
            first = state.back[k, order[i]] if order[i] >= 0 else 0.0
            second = state.there[i, order[k]] if order[k] >= 0 else 0.0
            both = target[order[i], order[k]] if order[i] >= 0 <= order[k] else 0.0
            rest, cross, square = source[i, k] - here, first + second - 2 * here, both - first - second + here
            rp += rest * cross
            rq += rest * square
            pp += cross * cross
            pq += cross * square
            qq += square * square
    slope = -2 * weight * rp - (1 - weight) * single
    return minimise(slope, weight * (pp - 2 * rq), 2 * weight * pq, weight * qq)


@compile_loop()
def minimise(c1: float, c2: float, c3: float, c4: float) -> float:
    """Where in [0, 1] c1·t + c2·t² + c3·t³ + c4·t⁴ is least.

    Its slope is monotone between the zeros of its curvature: each such stretch is bisected, faster by Newton.
    """
    a, b, c = 12 * c4, 6 * c3, 2 * c2
    q = -0.5 * (b + np.copysign(np.sqrt(max(b * b - 4 * a * c, 0.0)), b))
    first, second = q / a if a != 0 else 0.0, c / q if q != 0 else 0.0
    turns = (0.0, min(max(min(first, second), 0.0), 1.0), min(max(max(first, second), 0.0), 1.0), 1.0)
    best, least = (1.0, c1 + c2 + c3 + c4) if c1 + c2 + c3 + c4 < 0 else (0.0, 0.0)
    for piece in range(3):
        low, high = turns[piece], turns[piece + 1]
        if (
            c1 + low * (c + low * (3 * c3 + low * 4 * c4)) >= 0
            or c1 + high * (c + high * (3 * c3 + high * 4 * c4)) <= 0
        ):
            continue
        t = 0.5 * (low + high)
        for _ in range(60):
            slope = c1 + t * (c + t * (3 * c3 + t * 4 * c4))
            low, high = (t, high) if slope < 0 else (low, t)
            curvature = c + t * (b + t * a)
            ahead = t - slope / curvature if curvature > 0 else low
            t, before = ahead if low < ahead < high else 0.5 * (low + high), t
            if abs(t - before) <= 1e-15:
                break
        value = t * (c1 + t * (c2 + t * (c3 + t * c4)))
        if value < least:
            best, least = t, value
    return best


@compile_loop(fastmath=FUSED)
def move(state: State, order: Order, problem: Problem, step: float) -> float:
    """X ← X + step·(S − X), with its products; returns the largest change of an entry."""
    x, there, back, image = state
    target = problem.target
    n, m = x.shape
    keep, change = 1 - step, 0.0
    for i in range(n):
        for k in range(n):
            first = back[k, order[i]] if order[i] >= 0 else 0.0
            second = there[i, order[k]] if order[k] >= 0 else 0.0
            both = target[order[i], order[k]] if order[i] >= 0 <= order[k] else 0.0
            image[i, k] = keep * keep * image[i, k] + keep * step * (first + second) + step * step * both
    for i in range(n):
        for j in range(m):
            aim = 1.0 if order[i] == j else 0.0
            change = max(change, abs(step * (aim - x[i, j])))
            x[i, j] = keep * x[i, j] + step * aim
        for j in range(m):
            there[i, j] = keep * there[i, j] + (step * target[order[i], j] if order[i] >= 0 else 0.0)
        if not problem.symmetric:
            for j in range(m):
                back[i, j] = keep * back[i, j] + (step * target[j, order[i]] if order[i] >= 0 else 0.0)
    return change
