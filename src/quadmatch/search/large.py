"""Search for one pair of large graphs: sparse products, exact line search, few exchanges.

The same relaxation as for smaller pairs on rectangular matrices, without added places: with graphs of a few
edges a node, a step costs one assignment and products in the number of edges times nodes; nothing is larger
than [N, M].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quadmatch.search.problem import Index, Matrix, Vector
from quadmatch.search.relaxation import centre, choose, scale_places

WARM = (0.25, 0.5)
"""Shares of the weight in the first steps where a linear term leads: edges do not lock its errors in."""
STEPS_HARD, STEPS_SOFT = 40, 30
DENSE = 0.05
"""Share of edges above which sparse products are slower."""


class LargePair:
    """Quadratic term of a pair with n ≤ m nodes: 2·weight·⟨A, XBXᵀ⟩ − weight·(what B's chosen edges cost)."""

    def __init__(self, a: Matrix, b: Matrix, linear: Matrix | None, weight: float) -> None:
        self.source, self.target = _compress(2 * weight * a), _compress(b)
        self.squares = _compress(weight * b * b) if len(a) < len(b) else None
        self.linear = linear
        self.symmetric = bool(np.array_equal(a, a.T) and np.array_equal(b, b.T))
        self.shape = (len(a), len(b))

    def multiply(self, x: Matrix) -> Matrix:
        """Gradient of the quadratic term at X: F X Bᵀ + Fᵀ X B with F = 2·weight·A, less the edges' cost."""
        total = np.asarray(self.source @ (self.target @ x.T).T)
        total = 2 * total if self.symmetric else total + self.source.T @ (self.target.T @ x.T).T
        if self.squares is not None:
            both = self.squares + self.squares.T
            # A matrix of ones less the identity times X times the squares, without the matrix of ones.
            total -= (both @ x.sum(0))[None, :] - (both @ x.T).T
        return total

    def add_linear(self, quadratic: Matrix) -> Matrix:
        """The whole gradient."""
        return quadratic if self.linear is None else quadratic + self.linear


def _compress(matrix: Matrix) -> Any:
    from scipy.sparse import csr_array

    return csr_array(matrix) if np.count_nonzero(matrix) < DENSE * matrix.size else matrix


def match_large(
    a: Matrix, b: Matrix, linear: Matrix | None, weight: float, temperature: float
) -> tuple[Index, int]:
    """The target node of each source node, and the steps made; a linear term leads, else the temperature."""
    pair = LargePair(a, b, linear, weight)
    n, m = pair.shape
    x = np.full((n, m), 1 / m)
    taken = 0
    if linear is None:
        x, taken = _climb(pair, x, temperature, STEPS_SOFT, ())
    else:
        x = _spread(choose(pair.add_linear(pair.multiply(x))), m)
    x, more = _climb(pair, x, 0.0, STEPS_HARD, () if linear is None else WARM)
    return choose(x), taken + more


def _spread(columns: Index, m: int) -> Matrix:
    x = np.zeros((len(columns), m))
    x[np.arange(len(columns)), columns] = 1
    return x


def _point(gradient: Matrix, temperature: float) -> Matrix:
    n, m = gradient.shape
    if temperature == 0:
        return _spread(choose(gradient), m)
    square = np.zeros((m, m))
    square[:n] = gradient
    spread = centre(square) + 1e-300
    square -= square.max(1, keepdims=True)
    square /= temperature * spread
    np.exp(np.maximum(square, -300, out=square), out=square)
    scale_places(square)
    return square[:n]


def _climb(
    pair: LargePair, x: Matrix, temperature: float, steps: int, warm: tuple[float, ...]
) -> tuple[Matrix, int]:
    """Move X uphill with exact steps until it stays; the first steps with a share of the quadratic term."""
    quadratic = pair.multiply(x)
    for step in range(steps):
        share = warm[step] if step < len(warm) else 1.0
        gradient = pair.add_linear(share * quadratic)
        direction = _point(gradient, temperature)
        change, bend = direction - x, pair.multiply(direction) - quadratic
        slope, curvature = float((gradient * change).sum()), share * float((bend * change).sum()) / 2
        if curvature < 0:
            length = min(max(-slope / (2 * curvature), 0.0), 1.0)
        else:
            length = 1.0 if slope + curvature > 0 else 0.0
        x += length * change
        quadratic += length * bend
        worth = float((x * pair.add_linear(quadratic / 2)).sum())
        if share == 1 and length * (slope + length * curvature) <= 1e-5 * abs(worth):
            return x, step + 1
    return x, steps


def prune(
    a: Matrix, b: Matrix, linear: Matrix | None, weight: float, threshold: float, columns: Index
) -> Index:
    """Leave out, the worst first, what a partial match is worth more without; a partner of m is none."""
    m = len(b)
    columns = columns.copy()
    strength_a, strength_b = ((matrix**2 + matrix.T**2).sum(1) / 2 for matrix in (a, b))
    while True:
        kept = np.flatnonzero(columns < m)
        worth = _appraise(a, b, linear, weight, threshold, columns[kept], kept, strength_a, strength_b)
        drop = worth < min(0.0, float(worth.min(initial=0.0)) / 2)
        if not drop.any():
            return columns
        columns[kept[drop]] = m


def _appraise(
    a: Matrix,
    b: Matrix,
    linear: Matrix | None,
    weight: float,
    threshold: float,
    columns: Index,
    rows: Index,
    strength_a: Vector,
    strength_b: Vector,
) -> Vector:
    """What each pair adds to the match, edges to other pairs in both directions included."""
    common = a[np.ix_(rows, rows)] * b[np.ix_(columns, columns)]
    worth = 2 * weight * (common.sum(0) + common.sum(1))
    worth -= weight * threshold * (strength_a[rows] + strength_b[columns])
    if linear is not None:
        worth += linear[rows, columns]
    return np.asarray(worth)
