"""Robust tabu search: always the best exchange that is not banned, even if it makes the permutation worse.

E. Taillard, "Robust taboo search for the quadratic assignment problem", Parallel Computing 17, 1991: neither
of the two nodes returns to where it was for about n steps (a random number), unless that is the best so far.
"""

from __future__ import annotations

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.exchanges import (
    Permutation,
    Problem,
    State,
    Workspace,
    begin,
    choose,
    compute_cost,
    copy_into,
    draw,
    exchange,
    sweep,
)


@compile_loop
def block(work: Workspace, permutation: Permutation, u: int) -> None:
    """Block exchanges of u, which has just moved, while both nodes are banned from where they would go."""
    target = permutation[u]
    for v in range(len(permutation)):
        until = min(work.banned[u, permutation[v]], work.banned[v, target])
        work.blocked[u, v], work.blocked[v, u] = until, until


@compile_loop
def search_tabu(
    problem: Problem, work: Workspace, permutation: Permutation, best: Permutation, steps: int, state: State
) -> tuple[float, int]:
    """Walk from `permutation`, at most `steps`, until n of them (two or more) bring nothing better.

    The best permutation met is left in `best`; its cost and the number of steps are returned.
    """
    n = len(permutation)
    begin(problem, work, permutation)
    cost = compute_cost(problem, permutation)
    copy_into(best, permutation)
    least, step, last = cost, 0, 0
    shortest, spread = int(0.9 * n), int(1.1 * n) - int(0.9 * n) + 1
    while step < steps and step - last < n and not work.stop[0]:
        step += 1
        wanted = least - cost - problem.tolerance
        sweep(problem, work, step, wanted)
        u, v = choose(work, step, wanted, state)
        if u < 0:
            u = int(draw(state) * n)
            v = (u + 1 + int(draw(state) * (n - 1))) % n
        cost += work.change[max(u, v), min(u, v)]
        work.banned[u, permutation[u]] = step + shortest + int(draw(state) * spread)
        work.banned[v, permutation[v]] = step + shortest + int(draw(state) * spread)
        exchange(problem, work, permutation, u, v)
        block(work, permutation, u)
        block(work, permutation, v)
        if cost < least - problem.tolerance:
            copy_into(best, permutation)
            least, last = cost, step
    return compute_cost(
        problem, best
    ), step  # not the sum of its changes: the same permutation, the same cost


@compile_loop
def descend(problem: Problem, work: Workspace, permutation: Permutation, steps: int, state: State) -> int:
    """Exchange while that makes `permutation` better, at most `steps` times; the number of exchanges."""
    begin(problem, work, permutation)
    for step in range(steps):
        sweep(problem, work, 1, 0.0)
        u, v = choose(work, 1, 0.0, state)
        if work.stop[0] or u < 0 or work.change[max(u, v), min(u, v)] >= -problem.tolerance:
            return step
        exchange(problem, work, permutation, u, v)
    return steps
