"""Exchange search: swap two places at a time, the best swap first, with a memory against going back.

É. Taillard, "Robust taboo search for the quadratic assignment problem", Parallel Computing 17, 1991. The
gain of a swap of r and s is read from the gradient H in the order of the permutation, H_rs + H_sr − H_rr −
H_ss + Σ_k (F_rs + F_sr)(S_rs + S_sr); a swap changes H by one product of vectors for each term, so that a
step costs the square of the size, in sequential memory.
"""

from __future__ import annotations

import numpy as np

from quadmatch.search.problem import Index, Matrix, Stack, Vector, differentiate, permute
from quadmatch.solvers.compilation import compile_loop


@compile_loop
def _swap(
    first: Stack, chosen: Stack, gradient: Matrix, r: int, s: int, change: Vector, symmetric: bool
) -> None:
    """Bring the gradient and the chosen second matrices to the permutation with r and s swapped."""
    terms, size, _ = first.shape
    for k in range(terms):
        f, c = first[k], chosen[k]
        for j in range(size):
            change[j] = 2 * (c[r, j] - c[s, j]) if symmetric else c[r, j] - c[s, j]
        for i in range(size):
            factor = f[s, i] - f[r, i]
            if factor != 0:
                for j in range(size):
                    gradient[i, j] += factor * change[j]
        if not symmetric:
            for j in range(size):
                change[j] = c[j, r] - c[j, s]
            for i in range(size):
                factor = f[i, s] - f[i, r]
                if factor != 0:
                    for j in range(size):
                        gradient[i, j] += factor * change[j]
        for j in range(size):
            c[r, j], c[s, j] = c[s, j], c[r, j]
        for j in range(size):
            c[j, r], c[j, s] = c[j, s], c[j, r]
    for i in range(size):
        gradient[i, r], gradient[i, s] = gradient[i, s], gradient[i, r]


@compile_loop
def _swap_symmetric(first: Matrix, chosen: Matrix, gradient: Matrix, r: int, s: int, change: Vector) -> None:
    """As `_swap`, for one term of symmetric matrices."""
    size = len(change)
    for j in range(size):
        change[j] = 2 * (chosen[r, j] - chosen[s, j])
    for i in range(size):
        factor = first[s, i] - first[r, i]
        if factor != 0:
            for j in range(size):
                gradient[i, j] += factor * change[j]
        gradient[i, r], gradient[i, s] = gradient[i, s], gradient[i, r]
    for j in range(size):
        chosen[r, j], chosen[s, j] = chosen[s, j], chosen[r, j]
    for i in range(size):
        chosen[i, r], chosen[i, s] = chosen[i, s], chosen[i, r]


@compile_loop
def _are_symmetric(first: Stack, second: Stack) -> bool:
    terms, size, _ = first.shape
    for k in range(terms):
        for i in range(size):
            for j in range(i):
                if first[k, i, j] != first[k, j, i] or second[k, i, j] != second[k, j, i]:
                    return False
    return True


@compile_loop
def _find_swap(
    first: Stack,
    chosen: Stack,
    gradient: Matrix,
    p: Index,
    until: Index,
    step: int,
    needed: float,
    places: int,
) -> tuple[int, int, float]:
    """The best swap that is not forbidden, or that gains more than is needed for a new best."""
    terms, size, _ = first.shape
    r, s, gain = -1, -1, -np.inf
    for i in range(places):
        diagonal, here = gradient[i, i], p[i]
        for j in range(i + 1, size):
            worth = gradient[i, j] + gradient[j, i] - diagonal - gradient[j, j]
            for k in range(terms):
                worth += (first[k, i, j] + first[k, j, i]) * (chosen[k, i, j] + chosen[k, j, i])
            if worth > gain and (until[i, p[j]] < step or until[j, here] < step or worth > needed):
                r, s, gain = i, j, worth
    return r, s, gain


@compile_loop
def _find_swap_symmetric(
    first: Matrix,
    chosen: Matrix,
    gradient: Matrix,
    p: Index,
    until: Index,
    step: int,
    needed: float,
    places: int,
) -> tuple[int, int, float]:
    """As `_find_swap`, for one term of symmetric matrices: nearly all graphs are that."""
    r, s, gain = -1, -1, -np.inf
    for i in range(places):
        diagonal, here = gradient[i, i], p[i]
        for j in range(i + 1, len(p)):
            worth = (
                gradient[i, j] + gradient[j, i] - diagonal - gradient[j, j] + 4 * first[i, j] * chosen[i, j]
            )
            if worth > gain and (until[i, p[j]] < step or until[j, here] < step or worth > needed):
                r, s, gain = i, j, worth
    return r, s, gain


@compile_loop
def improve(first: Stack, second: Stack, linear: Matrix, p: Index, steps: int, places: int) -> int:
    """Bring `p` to the best permutation met in so many steps, and on until no swap gains; the steps made.

    Only the first `places` places are swapped with others: the rest are added ones, alike among themselves.
    """
    terms, size, _ = first.shape
    symmetric, chosen = _are_symmetric(first, second), permute(second, p)
    # Taken out of the loop: a view of an array costs as much as many of its numbers.
    simple, only, arranged = symmetric and terms == 1, first[0], chosen[0]
    gradient, largest = differentiate(first, chosen, linear, p, symmetric), 0.0
    for i in range(size):
        largest = max(largest, abs(gradient[i, i]))
    small = 1e-9 * largest + 1e-300
    best, change, until = p.copy(), np.empty(size), np.zeros((size, size), np.int64)
    gained, most, state, step, climbing = 0.0, 0.0, size, 0, True
    while step < steps or climbing:
        step += 1
        needed = most - gained + small
        if simple:
            r, s, gain = _find_swap_symmetric(only, arranged, gradient, p, until, step, needed, places)
        else:
            r, s, gain = _find_swap(first, chosen, gradient, p, until, step, needed, places)
        climbing = False
        if r < 0 or (step > steps and gain <= needed):
            continue
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF  # so that the search goes round in no circle
        until[r, p[r]] = until[s, p[s]] = step + size // 4 + 1 + (state >> 8) % size
        p[r], p[s] = p[s], p[r]
        gained += gain
        if simple:
            _swap_symmetric(only, arranged, gradient, r, s, change)
        else:
            _swap(first, chosen, gradient, r, s, change, symmetric)
        if gained > most + small:
            most, climbing = gained, True
            for i in range(size):
                best[i] = p[i]
    for i in range(size):
        p[i] = best[i]
    return step
