"""A batch of small pairs in one call, beside a loop over scipy's solver."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadmatch.bench.measurement import Row, one_thread, time_both, time_once

Matrix = NDArray[np.float64]
REQUIRED = 20.0


def make_pairs(
    count: int, least: int, most: int, seed: int = 0, *, weighted: bool = True
) -> tuple[list[Matrix], list[Matrix]]:
    """Graphs of random points and of noisy shuffled copies: near ones joined, weighted by nearness, or Delaunay."""
    rng = np.random.default_rng(seed)
    sources: list[Matrix] = []
    targets: list[Matrix] = []
    for size in rng.integers(least, most + 1, count):
        points = rng.random((size, 2))
        noisy = (points + rng.normal(0, 0.05, points.shape))[rng.permutation(size)]
        for graphs, cloud in ((sources, points), (targets, noisy)):
            graphs.append(_weigh(cloud) if weighted else _triangulate(cloud))
    return sources, targets


def _weigh(cloud: Matrix) -> Matrix:
    distance = np.linalg.norm(cloud[:, None] - cloud[None], axis=-1)
    nearness: Matrix = np.exp(-3 * distance) * (distance < 0.6)
    np.fill_diagonal(nearness, 0)
    return nearness


def _triangulate(cloud: Matrix) -> Matrix:
    import torch

    from quadmatch.delaunay import delaunay

    return np.asarray(delaunay(torch.from_numpy(cloud)).numpy())


def compute_misfit(a: Matrix, b: Matrix, columns: NDArray[np.int64]) -> float:
    """‖A − XBXᵀ‖², what both minimise."""
    return float(np.square(a - b[np.ix_(columns, columns)]).sum())


def run(count: int = 512, least: int = 5, most: int = 20, rounds: int = 7) -> list[Row]:
    """Processor seconds of both, best of interleaved rounds, and their mean objective; two kinds of graphs."""
    with one_thread():
        return [_compare(count, least, most, rounds, weighted) for weighted in (True, False)]


def _compare(count: int, least: int, most: int, rounds: int, weighted: bool) -> Row:
    from scipy.optimize import quadratic_assignment

    from quadmatch.graphs.match_graphs import match_graphs

    sources, targets = make_pairs(count, least, most, weighted=weighted)

    def solve() -> object:
        return match_graphs(sources, targets)

    def loop() -> list[NDArray[np.int64]]:
        # The product of the two terms is what is left of the squares once constants are dropped.
        options = {"maximize": True}
        return [quadratic_assignment(a, b, options=options).col_ind for a, b in zip(sources, targets)]

    warm_up = time_once(solve)
    ours, peer = time_both(solve, loop, rounds=rounds, repeats=3)
    results = match_graphs(sources, targets)
    found = [np.asarray(one.pairs)[:, 1] for one in results]  # type: ignore[union-attr]
    misfits = [
        float(np.mean([compute_misfit(*one) for one in zip(sources, targets, columns)])) for columns in (found, loop())
    ]
    return {
        "name": "match_graphs, one call beside a loop over scipy's quadratic_assignment",
        "size": f"{count} pairs, n = {least} to {most}, {'weighted' if weighted else 'Delaunay'}",
        "ours_seconds": ours,
        "peer_seconds": peer,
        "ratio": peer / ours,
        "required": REQUIRED,
        "met": peer / ours >= REQUIRED and misfits[0] <= misfits[1],
        "mean_objective": misfits[0],
        "mean_objective_of_the_loop": misfits[1],
        "warm_up_seconds": warm_up,
    }
