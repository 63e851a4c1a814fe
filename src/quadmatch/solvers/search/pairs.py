"""Pairs of unequal sizes one after the other in flat memory, and how a compiled loop reads one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import call_stoppably, compile_loop, stopping
from quadmatch.solvers.search.middle import choose
from quadmatch.solvers.search.problem import Index, Matrix, Vector, weigh_edges

BALANCE = 0.75
"""How much a node's edges count beside its similarities where the caller does not say."""
LONG = 10**8
"""Sum of cubed sizes from which weighing may take so long that it must hear Ctrl-C."""


class Pairs(NamedTuple):
    """Pairs whose source has no more nodes than the target, so that every source node has a partner."""

    sizes: Index
    """[P, 2]: nodes of the source and of the target."""
    starts: Index
    """[P, 4]: where the source's matrix, the target's, the linear term and the permutation begin."""
    sources: Vector
    targets: Vector
    linears: Vector
    """What matching two nodes adds by itself; empty where nothing does."""
    weights: Vector
    """Of the quadratic term of each pair."""
    stop: Index
    """[1]: set to one from outside, it ends a search that runs."""


def lay_end_to_end(
    sources: Sequence[NDArray[Any]], targets: Sequence[NDArray[Any]], linears: Sequence[NDArray[Any]] | None = None
) -> Pairs:
    """One flat copy of all pairs in double precision; weights are one."""
    n, m = (np.fromiter(map(len, side), np.int64, len(side)) for side in (sources, targets))
    sizes = np.stack((n, m), 1)
    lengths = np.stack((n * n, m * m, n * m if linears is not None else 0 * n, m), 1)
    starts = np.zeros_like(lengths)
    np.cumsum(lengths[:-1], axis=0, out=starts[1:])
    flat = _flatten(sources), _flatten(targets), _flatten(linears or ())
    return Pairs(sizes, starts, *flat, np.ones(len(n)), np.zeros(1, np.int64))


def _flatten(matrices: Sequence[NDArray[Any]]) -> Vector:
    if not matrices:
        return np.zeros(0)
    return np.concatenate([matrix.ravel() for matrix in matrices], dtype=np.float64)


@compile_loop
def read_pair(pairs: Pairs, index: int) -> tuple[Matrix, Matrix, Matrix, float]:
    """Views of one pair: source, target, linear term (no columns if none); and its weight."""
    n, m = pairs.sizes[index]
    at = pairs.starts[index]
    a = pairs.sources[at[0] : at[0] + n * n].reshape((n, n))
    b = pairs.targets[at[1] : at[1] + m * m].reshape((m, m))
    width = m if len(pairs.linears) else 0
    linear = pairs.linears[at[2] : at[2] + n * width].reshape((n, width))
    return a, b, linear, pairs.weights[index]


@compile_loop
def _average(values: Vector) -> float:
    total = 0.0
    for number in values:
        total += number
    return total / len(values)


def weigh_stoppably(pairs: Pairs, balance: bool, threshold: float, deadline: float) -> None:
    """`weigh_pairs` that Ctrl-C ends, and that makes do with less from the deadline on."""
    long = int((pairs.sizes[:, 0] * pairs.sizes[:, 1] ** 2).sum()) > LONG
    with stopping(deadline, pairs.stop):
        call_stoppably(weigh_pairs, pairs.stop, pairs, balance, threshold, long=long)


@compile_loop
def weigh_pairs(pairs: Pairs, balance: bool, threshold: float) -> None:
    """Turn similarities U into the linear term (1 − weight)·(U − unmatched), the weight found first if asked for.

    A `balance` is weight / (1 − weight) = BALANCE · gain / (4 · degree), the gain
    being how far the best assignment of U alone lies above its mean, a node, and the degree the mean sum of
    squared edges: so edges and similarities matter alike, in whatever units either comes. Without U it is
    one. In partial matches `unmatched` is `threshold` of the way from the mean of U to its mean over that
    best assignment. Once `pairs.stop` is set, a good assignment takes the place of the best.
    """
    for index in range(len(pairs.sizes)):
        a, b, linear, _ = read_pair(pairs, index)
        n, m = len(a), len(b)
        if not linear.size:
            continue
        mean, best = 0.0, 0.0
        if balance or threshold > 0:
            columns = choose(linear, pairs.stop)
            for i in range(n):
                best += linear[i, columns[i]] / n
                for k in range(m):
                    mean += linear[i, k] / (n * m)
        if balance:
            degree = (_average(weigh_edges(a)) + _average(weigh_edges(b))) / 2
            ratio = BALANCE * (best - mean) / (4 * degree) if degree > 0 else 1.0
            pairs.weights[index] = ratio / (1 + ratio) if best > mean else 1.0
        unmatched = mean + threshold * (best - mean) if threshold > 0 else 0.0
        for i in range(n):
            for k in range(m):
                linear[i, k] = (1 - pairs.weights[index]) * (linear[i, k] - unmatched)


@compile_loop
def measure_pairs(pairs: Pairs, permutations: Index, threshold: float, objectives: Vector, scores: Vector) -> None:
    """Objective of each match, and the score of each node's; partners from m on are none.

    Without threshold: weight·Σ (A_ij − B_p(i)p(j))² − Σ linear over matched nodes. With one, what partial
    matches minimise. A score is the share of the weight of edges to other matched nodes on which both
    graphs agree.
    """
    for index in range(len(pairs.sizes)):
        a, b, linear, weight = read_pair(pairs, index)
        n, m = len(a), len(b)
        at = pairs.starts[index, 3]
        p = permutations[at : at + n]
        here, there, total = np.zeros(0), np.zeros(0), 0.0
        if threshold > 0:
            here, there = weigh_edges(a), weigh_edges(b)
        for i in range(n):
            k = np.uint64(p[i])
            if k >= np.uint64(m):
                continue
            if threshold > 0:
                total += weight * threshold * (here[i] + there[k])
            if linear.size:
                total -= linear[i, k]
            agreed, whole = 0.0, 0.0
            for j in range(n):
                h = np.uint64(p[j])
                if h < np.uint64(m):
                    x, y = a[i, j], b[k, h]
                    total += weight * (-2 * x * y if threshold > 0 else (x - y) ** 2)
                    size = abs(x) + abs(y) + abs(a[j, i]) + abs(b[h, k])
                    whole += size
                    agreed += size - abs(x - y) - abs(a[j, i] - b[h, k])
            scores[at + i] = agreed / whole if whole > 0 else 1.0
        objectives[index] = total
