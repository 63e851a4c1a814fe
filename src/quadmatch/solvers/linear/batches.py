"""Compiled loop over a padded batch of linear assignment problems; imported when first asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import call_stoppably, compile_loop
from quadmatch.solvers.linear.shortest_paths import Index, Matrix, assign, make_room

Flags = NDArray[np.bool_]

LONG = 2 * 10**8
"""Rows of a batch times the square of its columns from which it may take so long that it must hear Ctrl-C."""


@compile_loop()
def list_true(flags: Flags) -> Index:
    """Positions of what is true."""
    places, count = np.empty(len(flags), np.int64), 0
    for k in range(len(flags)):
        if flags[k]:
            places[count] = k
            count += 1
    return places[:count]


@compile_loop()
def _read_costs(scores: Matrix, b: int, rows: Index, columns: Index, threshold: float, cost: Matrix) -> bool:
    """Cost of each match of real nodes: minus its score above the threshold; False if not finite."""
    huge, zero = abs(threshold) > 1e300, 0.0
    for i in range(len(rows)):
        for j in range(len(columns)):
            cost[i, j] = -scores[b, rows[i], columns[j]]
            huge |= abs(cost[i, j]) > 1e300
            zero += cost[i, j] * 0.0
    if huge or threshold != 0:
        # Differences of huge scores would overflow; a power of two leaves every digit as it is.
        factor = 2.0**-60 if huge else 1.0
        for i in range(len(rows)):
            for j in range(len(columns)):
                cost[i, j] = cost[i, j] * factor + threshold * factor
    return zero == 0.0


@compile_loop()
def solve_batch(
    scores: Matrix, rows: Flags, columns: Flags, partial: bool, threshold: float, chosen: Matrix, stop: Index
) -> bool:
    """Mark the best matches of each pair in `chosen`; False if scores are not finite. `stop[0]` ends it early."""
    room, order = make_room(max(scores.shape[1], scores.shape[2])), np.empty(scores.shape[1], np.int64)
    for b in range(scores.shape[0]):
        if stop[0] != 0:
            break
        left, right = list_true(rows[b]), list_true(columns[b])
        cost = np.empty((len(left), len(right)))
        if not _read_costs(scores, b, left, right, threshold, cost):
            return False
        assign(cost, partial, order, room, stop)
        for i in range(len(left)):
            if order[i] >= 0:
                chosen[b, left[i], right[order[i]]] = 1
    return True


def solve_stoppably(
    scores: Matrix, rows: Flags, columns: Flags, partial: bool, threshold: float, chosen: Matrix
) -> bool:
    """`solve_batch` that Ctrl-C ends."""
    stop, (_, n, m) = np.zeros(1, np.int64), scores.shape
    long = scores.size * max(n, m) > LONG
    return call_stoppably(solve_batch, stop, scores, rows, columns, partial, threshold, chosen, stop, long=long)
