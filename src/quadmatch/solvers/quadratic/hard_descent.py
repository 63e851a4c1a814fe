"""Compiled Frank–Wolfe with permutations as directions, one pair at a time; imported when first asked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.linear.batches import list_true
from quadmatch.solvers.linear.shortest_paths import Room, assign, make_room
from quadmatch.solvers.quadratic.hard_step import (
    Matrix,
    Order,
    Problem,
    State,
    add_product,
    choose_step,
    evaluate,
    fill_gradient,
    move,
    turn,
)

RESTING = 1e-2
"""A pair rests once no entry of X changes by more."""


class Options(NamedTuple):
    """What holds for every pair of a batch."""

    weight: float
    iterations: int
    partial: bool
    threshold: float
    """What unary scores count from."""
    schedule: bool
    masked: bool


class Found(NamedTuple):
    """What came out for one pair."""

    best: Order
    least: float
    taken: int
    rested: bool


class Inputs(NamedTuple):
    """A padded batch of pairs."""

    unary: NDArray[np.float64]
    source: NDArray[np.float64]
    target: NDArray[np.float64]
    start: NDArray[np.float64]
    rows: NDArray[np.bool_]
    columns: NDArray[np.bool_]


class Outputs(NamedTuple):
    """Room for the results; zeros to begin with."""

    chosen: NDArray[np.float64]
    objective: NDArray[np.float64]
    taken: NDArray[np.int64]
    rested: NDArray[np.bool_]


@compile_loop()
def _pick(batch: NDArray[np.float64], b: int, rows: Order, columns: Order, origin: float) -> tuple[Matrix, bool]:
    """What lies between real nodes, above the origin, in double precision; and whether it is finite."""
    picked, zero = np.empty((len(rows), len(columns))), 0.0
    for i in range(len(rows)):
        for j in range(len(columns)):
            picked[i, j] = batch[b, rows[i], columns[j]] - origin
            zero += picked[i, j] * 0.0
    return picked, zero == 0.0


@compile_loop()
def _is_symmetric(matrix: Matrix) -> bool:
    for i in range(len(matrix)):
        for k in range(i):
            if matrix[i, k] != matrix[k, i]:
                return False
    return True


@compile_loop()
def _begin(state: State, order: Order, problem: Problem, given: bool) -> None:
    """Set X to the permutation, unless it was `given`, and its products."""
    n, m = state.x.shape
    for i in range(n):
        for j in range(m):
            state.x[i, j] = state.x[i, j] if given else 1.0 if order[i] == j else 0.0
    add_product(state.x, problem.target, state.there, problem.stop)
    if not problem.symmetric:
        add_product(state.x, turn(problem.target), state.back, problem.stop)
    add_product(state.there, turn(state.x), state.image, problem.stop)


@compile_loop()
def _descend(x: Matrix, given: bool, problem: Problem, options: Options, room: Room) -> Found:
    """Best permutation found from `x`, or from the nearest permutation to it unless it was `given`.

    The first round and the last look at the permutation nearest to X instead of one downhill. Each part is
    called in one place only, because every place where it is called is compiled with a copy of it.
    """
    n, m = x.shape
    order, best = np.empty(n, np.int64), np.empty(n, np.int64)
    residual, cost = np.empty((n, n)), np.empty((n, m))
    there = np.zeros((n, m))
    state = State(x, there, there if problem.symmetric else np.zeros((n, m)), np.zeros((n, n)))
    least, taken, rested, first = np.inf, 0, False, True
    while True:
        last = not first and (rested or taken == options.iterations or problem.stop[0] != 0)
        if first or last:
            # Without matches that are worth nothing, or not even half of one, if nodes may stay unmatched.
            floor = 0.5 if last and options.partial else 0.0
            for i in range(n):
                for j in range(m):
                    cost[i, j] = floor - x[i, j]
        elif not fill_gradient(state, problem, residual, cost):
            break
        assign(cost, options.partial, order, room, problem.stop)
        value = evaluate(order, problem)
        if first or value < least:
            least = value
            for i in range(n):
                best[i] = order[i]
        if last:
            break
        if first:
            first = False
            _begin(state, order, problem, given)
            continue
        step = 2 / (taken + 2) if options.schedule else choose_step(state, order, problem)
        rested = move(state, order, problem, step) <= RESTING
        taken += 1
    return Found(best, least, taken, rested)


@compile_loop()
def descend_batch(inputs: Inputs, given: bool, options: Options, outputs: Outputs, stop: Order) -> int:
    """Each pair by itself, without its padding. Returns which input is not finite, −1 if none.

    `stop[0]`, set from outside, ends it early: the match that is being looked for is not the best then.
    """
    room = make_room(max(inputs.unary.shape[1], inputs.unary.shape[2]))
    for b in range(len(inputs.unary)):
        if stop[0] != 0:
            break
        left, right = list_true(inputs.rows[b]), list_true(inputs.columns[b])
        unary, good = _pick(inputs.unary, b, left, right, options.threshold)
        source, source_good = _pick(inputs.source, b, left, left, 0.0)
        target, target_good = _pick(inputs.target, b, right, right, 0.0)
        x, start_good = _pick(inputs.start, b, left, right, 0.0 if given else options.threshold)
        if not (good and source_good and target_good and start_good):
            return 0 if not good else 1 if not source_good else 2 if not target_good else 3
        symmetric = _is_symmetric(source) and _is_symmetric(target)
        problem = Problem(unary, source, target, options.weight, options.masked, symmetric, stop)
        found = _descend(x, given, problem, options, room)
        outputs.objective[b], outputs.taken[b], outputs.rested[b] = found.least, found.taken, found.rested
        for i in range(len(left)):
            if found.best[i] >= 0:
                outputs.chosen[b, left[i], right[found.best[i]]] = 1
    return -1
