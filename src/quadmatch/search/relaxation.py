"""Relaxation: Frank–Wolfe over doubly stochastic matrices, with entropic or exact directions.

J. T. Vogelstein et al., "Fast approximate quadratic programming for graph matching", PLoS ONE 10, 2015,
with the linear step replaced by Sinkhorn as in qc-DGM. The temperature is relative to the spread of the
gradient after row and column means are taken away, which change no direction: so neither the weight, the
density of the graphs nor the complement of both changes what a temperature means.
"""

from __future__ import annotations

import numpy as np

from quadmatch.search.problem import Index, Matrix, Stack
from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.linear_assignment import assign, make_room

SCALINGS = 100
"""Row and column scalings of a direction, at most."""
SPARSE = 10
"""A matrix with less than one entry in so many is multiplied entry by entry."""
TOLERANCE = 1e-3
"""Error of a row sum at which a direction is exact enough."""


@compile_loop
def choose(worth: Matrix) -> Index:
    """The column of each row that are worth most together; no more rows than columns."""
    columns = np.empty(len(worth), np.int64)
    assign(-worth, False, columns, make_room(worth.shape[1]))
    return columns


@compile_loop
def _product(f: Matrix, x: Matrix) -> Matrix:
    """F X; where most of F is zero, without those."""
    size, filled = len(f), 0
    for i in range(size):
        for j in range(size):
            filled += f[i, j] != 0
    if SPARSE * filled > size * size:
        dense: Matrix = np.dot(f, x)
        return dense
    total = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            factor = f[i, j]
            if factor != 0:
                for k in range(size):
                    total[i, k] += factor * x[j, k]
    return total


@compile_loop
def _turn(x: Matrix) -> Matrix:
    turned = np.empty((len(x), len(x)))
    for i in range(len(x)):
        for j in range(len(x)):
            turned[i, j] = x[j, i]
    return turned


@compile_loop
def multiply(first: Stack, second: Stack, x: Matrix) -> Matrix:
    """Gradient of the quadratic terms: Σ_k F_k X S_kᵀ + F_kᵀ X S_k."""
    size, total = len(x), np.zeros((len(x), len(x)))
    for k in range(len(first)):
        f, s = first[k], second[k]
        symmetric = True
        for i in range(size):
            for j in range(i):
                symmetric = symmetric and f[i, j] == f[j, i] and s[i, j] == s[j, i]
        there = _product(s, _turn(_product(f, x)))
        back = there if symmetric else _product(_turn(s), _turn(_product(_turn(f), x)))
        for i in range(size):
            for j in range(size):
                total[i, j] += there[j, i] + back[j, i]
    return total


@compile_loop
def centre(gradient: Matrix) -> float:
    """Take row and column means away in place; the standard deviation of what is left."""
    size = len(gradient)
    rows, columns = np.zeros(size), np.zeros(size)
    for i in range(size):
        for j in range(size):
            rows[i] += gradient[i, j] / size
            columns[j] += gradient[i, j] / size
    mean, square = 0.0, 0.0
    for i in range(size):
        mean += rows[i] / size
    for i in range(size):
        for j in range(size):
            gradient[i, j] += mean - rows[i] - columns[j]
            square += gradient[i, j] ** 2
    return float(np.sqrt(square)) / size


@compile_loop
def scale_places(kernel: Matrix) -> None:
    """Rows and columns to sum one."""
    size = len(kernel)
    v, sums = np.ones(size), np.zeros(size)
    u = np.empty(size)
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
        if error < TOLERANCE:
            break
    for i in range(size):
        for j in range(size):
            kernel[i, j] *= u[i] * v[j]


@compile_loop
def _direct(gradient: Matrix, temperature: float) -> Matrix:
    """Where the gradient points: Sinkhorn at the temperature, the best permutation at zero."""
    size = len(gradient)
    if temperature == 0:
        p = choose(gradient)
        direction = np.zeros_like(gradient)
        for i in range(size):
            direction[i, p[i]] = 1
        return direction
    kernel = gradient.copy()
    spread = centre(kernel)
    for i in range(size):
        most = kernel[i, 0]
        for j in range(size):
            most = max(most, kernel[i, j])
        for j in range(size):
            kernel[i, j] = np.exp(max((kernel[i, j] - most) / (temperature * spread + 1e-300), -300.0))
    scale_places(kernel)
    return kernel


@compile_loop
def relax(first: Stack, second: Stack, linear: Matrix, x: Matrix, temperature: float, steps: int) -> int:
    """Move `x`, doubly stochastic, uphill until it stays where it is; the number of steps that were made."""
    quadratic = multiply(first, second, x)
    gradient = quadratic + linear
    for step in range(steps):
        direction = _direct(gradient, temperature)
        beyond = multiply(first, second, direction)
        slope, curvature, largest = 0.0, 0.0, 0.0
        for i in range(len(x)):
            for j in range(len(x)):
                d = direction[i, j] - x[i, j]
                slope += gradient[i, j] * d
                curvature += (beyond[i, j] - quadratic[i, j]) * d / 2
                largest = max(largest, abs(d))
        if curvature < 0:
            length = min(max(-slope / (2 * curvature), 0.0), 1.0)
        else:
            length = 1.0 if slope + curvature > 0 else 0.0
        for i in range(len(x)):
            for j in range(len(x)):
                x[i, j] += length * (direction[i, j] - x[i, j])
                quadratic[i, j] += length * (beyond[i, j] - quadratic[i, j])
                gradient[i, j] = quadratic[i, j] + linear[i, j]
        if length * largest < 1e-3:
            return step + 1
    return steps
