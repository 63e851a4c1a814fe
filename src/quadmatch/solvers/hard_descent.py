"""Compiled Frank–Wolfe with permutations as directions, one pair at a time; imported when first asked for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.hard_step import (
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
from quadmatch.solvers.linear_assignment import Room, assign, list_true, make_room


class Options(NamedTuple):
    """What holds for every pair of a batch."""

    weight: float
    iterations: int
    tolerance: float
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

    unary: NDArray[Any]
    source: NDArray[Any]
    target: NDArray[Any]
    start: NDArray[Any]
    rows: NDArray[np.bool_]
    columns: NDArray[np.bool_]


class Outputs(NamedTuple):
    """Room for the results; zeros to begin with."""

    chosen: NDArray[Any]
    objective: NDArray[np.float64]
    taken: NDArray[np.int64]
    rested: NDArray[np.bool_]


@compile_loop()
def _pick(batch: NDArray[Any], b: int, rows: Order, columns: Order, origin: float) -> tuple[Matrix, bool]:
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
def _begin(x: Matrix, target: Matrix) -> State:
    n, m = x.shape
    state = State(x, np.zeros((n, m)), np.zeros((n, m)), np.zeros((n, n)))
    add_product(x, target, state.there)
    add_product(x, turn(target), state.back)
    add_product(state.there, turn(x), state.image)
    return state


@compile_loop()
def _round(x: Matrix, least: float, partial: bool, order: Order, cost: Matrix, room: Room) -> None:
    """The permutation nearest to X, without matches of at most `least` if `partial`."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            cost[i, j] = least - x[i, j]
    assign(cost, partial, order, room)


@compile_loop()
def _descend(x: Matrix, given: bool, problem: Problem, options: Options, room: Room) -> Found:
    """Best permutation found from `x`, or from the nearest permutation to it unless it was `given`."""
    n, m = x.shape
    order, residual, gradient = np.empty(n, np.int64), np.empty((n, n)), np.empty((n, m))
    _round(x, 0.0, options.partial, order, gradient, room)
    best, least = order.copy(), evaluate(order, problem)
    for i in range(n):
        for j in range(m):
            x[i, j] = x[i, j] if given else 1.0 if order[i] == j else 0.0
    state = _begin(x, problem.target)
    taken, rested = 0, False
    while True:
        last = rested or taken == options.iterations
        if last:
            _round(x, 0.5 if options.partial else 0.0, options.partial, order, gradient, room)
        elif not fill_gradient(state, problem, residual, gradient):
            break
        else:
            assign(gradient, options.partial, order, room)
        value = evaluate(order, problem)
        if value < least:
            least = value
            for i in range(n):
                best[i] = order[i]
        if last:
            break
        step = 2 / (taken + 2) if options.schedule else choose_step(state, order, problem)
        rested = move(state, order, problem.target, step) <= options.tolerance
        taken += 1
    return Found(best, least, taken, rested)


@compile_loop()
def descend_batch(inputs: Inputs, given: bool, options: Options, outputs: Outputs) -> int:
    """Each pair by itself, without its padding. Returns which input is not finite, −1 if none."""
    room = make_room(max(inputs.unary.shape[1], inputs.unary.shape[2]))
    for b in range(len(inputs.unary)):
        left, right = list_true(inputs.rows[b]), list_true(inputs.columns[b])
        unary, good = _pick(inputs.unary, b, left, right, options.threshold)
        source, source_good = _pick(inputs.source, b, left, left, 0.0)
        target, target_good = _pick(inputs.target, b, right, right, 0.0)
        x, start_good = _pick(inputs.start, b, left, right, 0.0 if given else options.threshold)
        if not (good and source_good and target_good and start_good):
            return 0 if not good else 1 if not source_good else 2 if not target_good else 3
        symmetric = _is_symmetric(source) and _is_symmetric(target)
        problem = Problem(unary, source, target, options.weight, options.masked, symmetric)
        found = _descend(x, given, problem, options, room)
        outputs.objective[b], outputs.taken[b], outputs.rested[b] = found.least, found.taken, found.rested
        for i in range(len(left)):
            if found.best[i] >= 0:
                outputs.chosen[b, left[i], right[found.best[i]]] = 1
    return -1
