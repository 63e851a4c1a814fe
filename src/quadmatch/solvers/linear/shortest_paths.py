"""Compiled linear assignment of one problem: shortest augmenting paths with potentials.

R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment
problems", Computing 38, 1987; D. F. Crouse, "On implementing 2D rectangular assignment algorithms", IEEE TAES
52, 2016. It loads the compiler. An expression over whole arrays would cost a second of compilation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import compile_loop

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

# Without NaN the search for the nearest column becomes one vector instruction after another.
FINITE = frozenset({"nnan", "nsz"})


class Room(NamedTuple):
    """Room for each problem, as long as the larger side; u and v are potentials of rows and of columns."""

    u: NDArray[np.float64]
    v: NDArray[np.float64]
    price: NDArray[np.float64]
    distance: NDArray[np.float64]
    final: NDArray[np.float64]
    row_of: Index
    column_of: Index
    before: Index
    scanned: Index


@compile_loop()
def make_room(size: int) -> Room:
    """Room for problems of up to `size` rows and columns."""
    # Rows of one array would be fewer to compile, but slower: the search could not know that they are apart.
    u, v, price, distance = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    row_of, column_of, before = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    return Room(u, v, price, distance, np.empty(size), row_of, column_of, before, np.empty(size, np.int64))


@compile_loop(fastmath=FINITE)
def _begin(cost: Matrix, room: Room) -> None:
    """Feasible potentials from the smallest entries, and the matches that these alone settle."""
    n, m = cost.shape
    u, v, row_of, column_of = room.u, room.v, room.row_of, room.column_of
    for j in range(m):
        # With more columns than rows, a column that stays free must keep potential zero.
        v[j], row_of[j] = cost[0, j] if n == m else 0.0, -1
    if n == m:
        for i in range(1, n):
            for j in range(m):
                v[j] = min(v[j], cost[i, j])
    for i in range(n):
        best, least = 0, cost[i, 0] - v[0]
        for j in range(1, m):
            reduced = cost[i, j] - v[j]
            if reduced < least or (reduced == least and row_of[j] < 0 <= row_of[best]):
                best, least = j, reduced
        u[i], column_of[i] = least, -1
        if row_of[best] < 0:
            row_of[best], column_of[i] = i, best


@compile_loop(fastmath=FINITE)
def _scan(cost: Matrix, i: int, offset: float, room: Room) -> int:
    """Shorten paths through row `i`; the nearest column, a free one if there is a choice."""
    price, distance, before, row_of = room.price, room.distance, room.before, room.row_of
    m = cost.shape[1]
    for j in range(m):
        through = offset + (cost[i, j] - price[j])
        closer = through < distance[j]
        distance[j] = through if closer else distance[j]
        before[j] = i if closer else before[j]
    least = np.inf
    for j in range(m):
        least = min(least, distance[j])
    nearest = -1
    for j in range(m):
        if distance[j] == least:
            if row_of[j] < 0:
                return j
            if nearest < 0:
                nearest = j
    return nearest


@compile_loop()
def _solve(cost: Matrix, room: Room, stop: Index) -> None:
    """Fill `room.row_of[column]` with the row that takes it, −1 if none; 1 ≤ rows ≤ columns, costs finite.

    Once `stop[0]` is set, each row that is left takes a free column: the match is whole, though not the best.
    """
    n, m = cost.shape
    u, v, price, distance, final, row_of, column_of, before, scanned = room
    _begin(cost, room)
    for start in range(n):
        if column_of[start] >= 0:
            continue
        for j in range(m):
            distance[j], price[j] = np.inf, v[j]
        for j in range(m if stop[0] != 0 else 0):
            # What is taken is infinitely far, once it is to stop: the nearest column is a free one then.
            price[j] = -np.inf if row_of[j] >= 0 else price[j]
        i, count, reached = start, 0, 0.0
        while True:
            nearest = _scan(cost, i, reached - u[i], room)
            reached = distance[nearest]
            if row_of[nearest] < 0:
                break
            scanned[count], final[nearest] = nearest, reached
            count += 1
            # Infinitely far from now on, whatever the offset: scanned once, never again.
            distance[nearest], price[nearest] = np.inf, -np.inf
            i = row_of[nearest]
        u[start] += reached
        for k in range(count):
            j = scanned[k]
            u[row_of[j]] += reached - final[j]
            v[j] -= reached - final[j]
        i = -1
        while i != start:
            i = before[nearest]
            row_of[nearest] = i
            nearest, column_of[i] = column_of[i], nearest


@compile_loop()
def assign(cost: Matrix, partial: bool, order: Index, room: Room, stop: Index) -> None:
    """Fill `order[row]` with the column that makes the total cost least; −1 for a row that stays free.

    All nodes of the smaller side are matched; if `partial`, only where it brings a negative cost. `cost`
    may be changed. `stop[0]`, set from outside, ends it early: the match is whole then, but may cost more.
    """
    n, m = cost.shape
    for i in range(n):
        order[i] = -1
        for j in range(m):
            cost[i, j] = min(cost[i, j], 0.0) if partial else cost[i, j]
    if n == 0 or m == 0:
        return
    table = cost if n <= m else np.empty((m, n))
    for i in range(n if n > m else 0):
        for j in range(m):
            table[j, i] = cost[i, j]
    _solve(table, room, stop)
    for j in range(max(n, m)):
        i = room.row_of[j]
        if i >= 0:
            order[i if n <= m else j] = j if n <= m else i
    for i in range(n):
        if partial and order[i] >= 0 and cost[i, order[i]] >= 0:
            order[i] = -1
