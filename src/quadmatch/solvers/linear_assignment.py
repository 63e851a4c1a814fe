"""Compiled loop over a batch of linear assignment problems: shortest augmenting paths with potentials.

R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment
problems", Computing 38, 1987; D. F. Crouse, "On implementing 2D rectangular assignment algorithms", IEEE TAES
52, 2016. Imported only when an assignment is asked for, because it loads the compiler.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import compile_loop

Matrix = NDArray[np.float64]
Batch = NDArray[np.float64]
Flags = NDArray[np.bool_]
Vector = NDArray[np.float64]
Index = NDArray[np.int64]


# Without NaN the search for the nearest column becomes one vector instruction after another.
FINITE = {"nnan", "nsz"}


@compile_loop(fastmath=FINITE)
def _begin(cost: Matrix, u: Vector, v: Vector, row_of: Index, column_of: Index) -> None:
    """Feasible potentials from the smallest entries, and the matches that these alone settle."""
    n, m = cost.shape
    v[:], row_of[:], column_of[:] = 0, -1, -1
    if n == m:
        # With more columns than rows, a column that stays free must keep potential zero.
        v[:] = cost[0]
        for i in range(1, n):
            for j in range(m):
                v[j] = min(v[j], cost[i, j])
    for i in range(n):
        best, least = 0, cost[i, 0] - v[0]
        for j in range(1, m):
            reduced = cost[i, j] - v[j]
            if reduced < least or (reduced == least and row_of[j] < 0 <= row_of[best]):
                best, least = j, reduced
        u[i] = least
        if row_of[best] < 0:
            row_of[best], column_of[i] = i, best


@compile_loop(fastmath=FINITE)
def _solve(cost: Matrix, row_of: Index, reals: Matrix, integers: NDArray[np.int64]) -> None:
    """Fill `row_of[column]` with the row that takes it, −1 if none; 1 ≤ rows ≤ columns.

    `reals` and `integers` are room to work in: five and three rows at least as long as there are columns.
    """
    n, m = cost.shape
    u, v, price, distance, final = reals[0, :n], reals[1, :m], reals[2, :m], reals[3, :m], reals[4, :m]
    column_of, before, scanned = integers[0, :n], integers[1, :m], integers[2, :m]
    _begin(cost, u, v, row_of, column_of)
    for start in range(n):
        if column_of[start] >= 0:
            continue
        distance[:], price[:] = np.inf, v
        i, reached, count, sink = start, 0.0, 0, -1
        while sink < 0:
            offset = reached - u[i]
            for j in range(m):
                through = offset + (cost[i, j] - price[j])
                closer = through < distance[j]
                distance[j] = through if closer else distance[j]
                before[j] = i if closer else before[j]
            reached = np.inf
            for j in range(m):
                reached = min(reached, distance[j])
            nearest = -1
            for j in range(m):
                if distance[j] == reached:
                    if row_of[j] < 0:  # a free column wins a tie: the path ends there
                        nearest = j
                        break
                    if nearest < 0:
                        nearest = j
            if row_of[nearest] < 0:
                sink = nearest
                continue
            scanned[count], final[nearest] = nearest, reached
            count += 1
            # Infinitely far from now on, whatever the offset: scanned once, never again.
            distance[nearest], price[nearest] = np.inf, -np.inf
            i = row_of[nearest]
        u[start] += reached
        for j in scanned[:count]:
            u[row_of[j]] += reached - final[j]
            v[j] -= reached - final[j]
        j, i = sink, -1
        while i != start:
            i = before[j]
            row_of[j] = i
            column_of[i], j = j, column_of[i]


@compile_loop()
def _read_costs(
    scores: Matrix, left: Index, right: Index, swap: bool, threshold: float, cost: Matrix
) -> bool:
    """Cost of each match: minus its worth above the threshold, at most zero; False if not finite."""
    huge = abs(threshold) > 1e300 and threshold > -np.inf
    zero = 0.0
    for i in range(len(left)):
        for j in range(len(right)):
            cost[i, j] = -(scores[right[j], left[i]] if swap else scores[left[i], right[j]])
            huge |= abs(cost[i, j]) > 1e300
            zero += cost[i, j] * 0.0
    # Differences of huge scores would overflow; a power of two leaves every digit as it is.
    factor = 2.0**-60 if huge else 1.0
    if huge:
        cost *= factor
    if threshold > -np.inf:
        for i in range(len(left)):
            for j in range(len(right)):
                cost[i, j] = min(cost[i, j] + threshold * factor, 0.0)
    return zero == 0.0


@compile_loop()
def _list_true(flags: Flags, into: Index) -> Index:
    count = 0
    for k in range(len(flags)):
        if flags[k]:
            into[count] = k
            count += 1
    return into[:count]


@compile_loop()
def solve_batch(scores: Batch, rows: Flags, columns: Flags, threshold: float, chosen: Batch) -> bool:
    """Mark the best matches in `chosen`; a threshold of −inf leaves no node out; False if not finite."""
    size = max(scores.shape[1], scores.shape[2])
    costs, reals, integers = np.empty(size * size), np.empty((5, size)), np.empty((6, size), np.int64)
    for b in range(scores.shape[0]):
        left, right = _list_true(rows[b], integers[4]), _list_true(columns[b], integers[5])
        swap = len(left) > len(right)
        if swap:
            left, right = right, left
        n, m = len(left), len(right)
        if n == 0:
            continue
        cost, row_of = costs[: n * m].reshape(n, m), integers[3, :m]
        if not _read_costs(scores[b], left, right, swap, threshold, cost):
            return False
        _solve(cost, row_of, reals, integers)
        for j in range(m):
            i = row_of[j]
            if i >= 0 and (threshold == -np.inf or cost[i, j] < 0):
                if swap:
                    chosen[b, right[j], left[i]] = 1
                else:
                    chosen[b, left[i], right[j]] = 1
    return True
