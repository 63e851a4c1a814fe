"""Exchange search: swap two rows at a time, the best swap first, with a memory against going back.

É. Taillard, "Robust taboo search for the quadratic assignment problem", Parallel Computing 17, 1991. The
gain of a swap of r and s is read from the gradient H in the order of the permutation, H_rs + H_sr − H_rr −
H_ss + 4 Σ_k F_rs S_rs over symmetric terms (of antisymmetric ones that sum is zero); a swap changes H by one
product of vectors for each term, so that a step costs the square of the size, in sequential memory.
"""

from __future__ import annotations

import numpy as np

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.search.problem import DENSE, Index, Matrix, Stack, Vector, differentiate, evaluate, permute

ROUNDING = 1e-11
"""Share of the largest numbers in a sum below which a difference may be rounding."""
CLIMB = 20
"""Steps for each row, at most, that a search goes on beyond its steps while every one gains."""


@compile_loop
def _swap(first: Stack, chosen: Stack, gradient: Matrix, p: Index, r: int, s: int, change: Vector) -> None:
    """Swap the partners of r and s, and bring the gradient and the chosen second matrices along."""
    terms, size, _ = first.shape
    for k in range(terms):
        for j in range(size):
            change[j] = 2 * (chosen[k, r, j] - chosen[k, s, j])
        for i in range(size):
            factor = first[k, s, i] - first[k, r, i]
            if size <= DENSE or factor != 0:
                for j in range(size):
                    gradient[i, j] += factor * change[j]
        for j in range(size):
            chosen[k, r, j], chosen[k, s, j] = chosen[k, s, j], chosen[k, r, j]
        for i in range(size):
            chosen[k, i, r], chosen[k, i, s] = chosen[k, i, s], chosen[k, i, r]
    for i in range(size):
        gradient[i, r], gradient[i, s] = gradient[i, s], gradient[i, r]
    p[r], p[s] = p[s], p[r]


@compile_loop
def _find_swap(
    first: Stack,
    chosen: Stack,
    gradient: Matrix,
    even: int,
    p: Index,
    until: Index,
    step: int,
    needed: float,
    rows: int,
    diagonal: Vector,
) -> tuple[int, int, float]:
    """The best swap that is not forbidden, or that gains more than is needed for a new best."""
    size = len(p)
    r, s, most = -1, -1, -np.inf
    for j in range(size):
        diagonal[j] = gradient[j, j]
    for i in range(rows):
        own, partner = diagonal[i], p[i]
        for j in range(np.uint64(i + 1), np.uint64(size)):  # without a sign, which would be asked for at every entry
            gain = gradient[i, j] + gradient[j, i] - own - diagonal[j] + 4 * first[0, i, j] * chosen[0, i, j]
            for k in range(1, even):
                gain += 4 * first[k, i, j] * chosen[k, i, j]
            if gain > most and (until[i, p[j]] < step or until[j, partner] < step or gain > needed):
                r, s, most = i, np.int64(j), gain  # type: ignore[assignment]
    return r, s, most


@compile_loop
def _bound_rounding(first: Stack, chosen: Stack, gradient: Matrix) -> float:
    """A gain below this may be rounding: a share of the largest numbers that any gain is made of."""
    terms, size, _ = first.shape
    largest = 0.0
    for i in range(size):
        for j in range(size):
            largest = max(largest, abs(gradient[i, j]))
    for k in range(terms):
        left, right = 0.0, 0.0
        for i in range(size):
            for j in range(size):
                left, right = max(left, abs(first[k, i, j])), max(right, abs(chosen[k, i, j]))
        largest += 4 * left * right
    return ROUNDING * largest + 1e-300


@compile_loop
def improve(
    first: Stack,
    second: Stack,
    linear: Matrix,
    even: int,
    p: Index,
    steps: int,
    patience: int,
    rows: int,
    seed: int,
    stop: Index,
) -> int:
    """Bring `p` to the best permutation met in so many steps, and on until no swap gains; the steps that were made.

    The search also ends where `patience` steps in a row bring nothing better. Only the first `rows` rows are
    swapped with others: the rest are added ones, alike among themselves. The gradient is kept up by
    differences. After as many steps as there are rows, a new best counts only if the objective itself says
    so, which is exact and grows each time: rounding cannot keep the search going. `stop[0]` ends it from
    outside.
    """
    size, chosen = len(p), permute(second, p)
    gradient, change, diagonal = np.empty((size, size)), np.empty(size), np.empty(size)
    differentiate(first, chosen, linear, p, gradient, stop)
    small = _bound_rounding(first, chosen, gradient)
    best, until = p.copy(), np.zeros((size, size), np.int64)
    most = 0.0
    for i in range(size):
        most += (gradient[i, i] + linear[i, p[i]]) / 2
    objective, number, step, last, climbing, end = most, seed, 0, 0, True, steps + CLIMB * size
    while ((step < steps and step - last < patience) or climbing) and step < end and stop[0] == 0:
        step += 1
        needed = most - objective + small
        r, s, gain = _find_swap(first, chosen, gradient, even, p, until, step, needed, rows, diagonal)
        climbing = False
        if r < 0 or (step > steps and gain <= needed):
            continue
        number = (number * 1103515245 + 12345) & 0x7FFFFFFF  # so that the search goes round in no circle
        until[r, p[r]] = until[s, p[s]] = step + size // 4 + 1 + (number >> 8) % size
        _swap(first, chosen, gradient, p, r, s, change)
        objective += gain
        if objective > most + small:
            # Few differences have lost no digit that counts, and small graphs are solved in few.
            objective = evaluate(first, chosen, linear, p) if step > size else objective
            if objective > most + small:
                most, last, climbing = objective, step, True
                for i in range(size):
                    best[i] = p[i]
            else:
                differentiate(first, chosen, linear, p, gradient, stop)
    for i in range(size):
        p[i] = best[i]
    return step
