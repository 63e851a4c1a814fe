"""What exchanging two nodes changes in the cost of a quadratic assignment: O(1) for each of all exchanges.

A permutation p with matrix P costs f(P) = Σ_ij A_ij B_p(i)p(j) + Σ_i C_ip(i). With its gradient
G = A P Bᵀ + Aᵀ P B + C, exchanging the targets of u and v changes the cost by exactly

    G_up(v) + G_vp(u) − G_up(u) − G_vp(v) + α_uv β_p(u)p(v),

α_uv = A_uu + A_vv − A_uv − A_vu and β likewise from B, whatever the diagonals, symmetric or not. It changes G
by a matrix of rank one (two if not symmetric), so that what any other exchange changes follows without a sum
(after E. Taillard, "Robust taboo search for the quadratic assignment problem", Parallel Computing 17, 1991).
Rows are padded to whole vectors, and of all exchanges the lower triangle is kept up to date, in blocks: that
is what compiles to vector instructions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import compile_loop

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Steps = NDArray[np.int64]
Permutation = NDArray[np.int64]
State = NDArray[np.uint64]

BLOCK = 16  # two to four vector registers
FAR = 1e300  # an exchange that is never chosen; finite, because the loops assume that


class Problem(NamedTuple):
    """What is minimised, scaled so that no sum of products comes near `FAR`."""

    source: Matrix  # A, [n, width]: padded with zeros to a multiple of BLOCK
    target: Matrix  # B, [n, n]
    linear: Matrix  # C, [n, n]
    source_bend: Matrix  # α
    target_bend: Matrix  # β
    symmetric: bool
    tolerance: float  # a change must be larger to count


class Workspace(NamedTuple):
    """What a search keeps up to date about its current permutation; index v stands for the target p(v)."""

    arranged: Matrix  # B_p(u)p(v)
    gradient: Matrix  # G_up(v)
    change: Matrix  # of the cost, by exchanging u and v
    banned: Steps  # the step until which u may not go to target t
    blocked: Steps  # the step until which u and v may not be exchanged
    out: Matrix  # [2, width]: what `change` still lacks of the last exchange, by rows and by columns: source
    back: Matrix  # [2, width]: the same, target
    least: Vector  # the best allowed change in each column
    stop: Steps  # [1]: set from outside, while a search runs, to make it end


def make_workspace(problem: Problem) -> Workspace:
    """Room for one search."""
    n, width = problem.source.shape
    return Workspace(
        arranged=np.zeros((n, width)),
        gradient=np.zeros((n, width)),
        change=np.zeros((n, width)),
        banned=np.zeros((n, n), np.int64),
        blocked=np.zeros((n, width), np.int64),
        out=np.zeros((2, width)),
        back=np.zeros((2, width)),
        least=np.zeros(width),
        stop=np.zeros(1, np.int64),
    )


@compile_loop
def draw(state: State) -> float:
    """A uniform number in [0, 1): Marsaglia's xorshift, the same on every machine."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return (x >> np.uint64(11)) * (1.0 / 9007199254740992.0)  # type: ignore[no-any-return]


@compile_loop
def compute_cost(problem: Problem, permutation: Permutation) -> float:
    """f(P), from scratch."""
    cost = 0.0
    for u in range(len(permutation)):
        for v in range(len(permutation)):
            cost += problem.source[u, v] * problem.target[permutation[u], permutation[v]]
        cost += problem.linear[u, permutation[u]]
    return cost


@compile_loop
def copy_into(permutation: Permutation, source: Permutation) -> None:
    """Element by element, which compiles in a fraction of the time that a slice takes."""
    for u in range(len(permutation)):
        permutation[u] = source[u]


@compile_loop
def begin(problem: Problem, work: Workspace, permutation: Permutation) -> None:
    """Compute all changes from scratch, and forget what was banned."""
    n, width = problem.source.shape
    for u in range(n):
        for v in range(n):
            work.arranged[u, v] = problem.target[permutation[u], permutation[v]]
            work.gradient[u, v] = problem.linear[u, permutation[v]]
            work.banned[u, v] = 0
        for v in range(width):
            work.blocked[u, v], work.change[u, v] = 0, FAR
    for v in range(width):
        work.out[0, v], work.out[1, v], work.back[0, v], work.back[1, v] = 0.0, 0.0, 0.0, 0.0
    for u in range(n):
        for k in range(n):
            add_row(
                work.gradient, u, (2.0 if problem.symmetric else 1.0) * problem.source[k, u], work.arranged, k
            )
    if not problem.symmetric:
        turned = np.zeros((n, width))
        for u in range(n):
            for k in range(n):
                turned[k, u] = work.arranged[u, k]
        for u in range(n):
            for k in range(n):
                add_row(work.gradient, u, problem.source[u, k], turned, k)
    for u in range(n):
        update_node(problem, work, permutation, u)


@compile_loop
def add_row(into: Matrix, u: int, factor: float, rows: Matrix, k: int) -> None:
    """Add a multiple of one row to another; of a sparse matrix, most multiples are zero."""
    if factor != 0.0:
        for v in range(into.shape[1]):
            into[u, v] += factor * rows[k, v]


@compile_loop
def update_node(problem: Problem, work: Workspace, permutation: Permutation, u: int) -> None:
    """What exchanging u with any node changes, from the gradient, plus what `sweep` is going to subtract."""
    gradient, out, back = work.gradient, work.out, work.back
    for v in range(len(permutation)):
        change = gradient[u, v] + gradient[v, u] - gradient[u, u] - gradient[v, v]
        change += problem.source_bend[u, v] * problem.target_bend[permutation[u], permutation[v]]
        change += (out[0, u] - out[0, v]) * (back[0, u] - back[0, v])
        if not problem.symmetric:
            change += (out[1, u] - out[1, v]) * (back[1, u] - back[1, v])
        work.change[u, v], work.change[v, u] = change, change
    work.change[u, u] = FAR


@compile_loop
def sweep(problem: Problem, work: Workspace, step: int, wanted: float) -> None:
    """Carry the last exchange into all changes; find each column's least, not blocked or below `wanted`."""
    change, blocked, least = work.change, work.blocked, work.least
    out, back, out_columns, back_columns = work.out[0], work.back[0], work.out[1], work.back[1]
    for v in range(len(least)):
        least[v] = FAR
    for u in range(change.shape[0]):
        out_u, back_u = out[u], back[u]
        end = (u // BLOCK + 1) * BLOCK
        if problem.symmetric:
            for v in range(end):
                now = change[u, v] - (out_u - out[v]) * (back_u - back[v])
                change[u, v] = now
                allowed = now if (blocked[u, v] < step) | (now < wanted) else FAR
                least[v] = allowed if allowed < least[v] else least[v]
        else:
            columns_u, back_columns_u = out_columns[u], back_columns[u]
            for v in range(end):
                now = change[u, v] - (out_u - out[v]) * (back_u - back[v])
                now -= (columns_u - out_columns[v]) * (back_columns_u - back_columns[v])
                change[u, v] = now
                allowed = now if (blocked[u, v] < step) | (now < wanted) else FAR
                least[v] = allowed if allowed < least[v] else least[v]


@compile_loop
def choose(work: Workspace, step: int, wanted: float, state: State) -> tuple[int, int]:
    """The best exchange that `sweep` found, equals with the same chance; (−1, −1) if all are blocked."""
    n = work.change.shape[0]
    best, ties, v = FAR, 0, -1
    for column in range(n):
        if work.least[column] < best:
            best, ties, v = work.least[column], 1, column
        elif v >= 0 and work.least[column] == best:
            ties += 1
            if draw(state) * ties < 1.0:
                v = column
    u, ties = -1, 0
    if v < 0:
        return u, v
    for row in range(v // BLOCK * BLOCK, n):
        if work.change[row, v] == best and (work.blocked[row, v] < step or best < wanted):
            ties += 1
            if ties == 1 or draw(state) * ties < 1.0:
                u = row
    return u, v


@compile_loop
def exchange(problem: Problem, work: Workspace, permutation: Permutation, u: int, v: int) -> None:
    """Exchange the targets of u and v; `sweep` carries it into the changes that do not touch u or v."""
    source, arranged, gradient, out, back = problem.source, work.arranged, work.gradient, work.out, work.back
    n, width = source.shape
    scale = 2.0 if problem.symmetric else 1.0
    for w in range(width):
        out[0, w] = scale * (source[u, w] - source[v, w])
        back[0, w] = arranged[v, w] - arranged[u, w]
    if not problem.symmetric:
        for w in range(n):
            out[1, w] = source[w, u] - source[w, v]
            back[1, w] = arranged[w, v] - arranged[w, u]
    for side in range(1 if problem.symmetric else 2):
        for w in range(n):
            add_row(gradient, w, out[side, w], back, side)
    for w in range(n):
        gradient[w, u], gradient[w, v] = gradient[w, v], gradient[w, u]
    for w in range(width):
        arranged[u, w], arranged[v, w] = arranged[v, w], arranged[u, w]
    for w in range(n):
        arranged[w, u], arranged[w, v] = arranged[w, v], arranged[w, u]
    permutation[u], permutation[v] = permutation[v], permutation[u]
    update_node(problem, work, permutation, u)
    update_node(problem, work, permutation, v)
