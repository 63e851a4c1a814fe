"""How many nodes `match_graphs` gets right: noisy random graphs, and large sparse ones beside their memory."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.bench.measurement import Row, measure_peak, one_thread, report_peak

Matrix = NDArray[np.float64]


def correlate(nodes: int, correlation: float, seed: int, share: float = 0.5) -> tuple[Matrix, Matrix]:
    """Two Erdős–Rényi graphs whose edges correlate; node i of one is node i of the other."""
    rng = np.random.default_rng(seed)
    upper = np.triu(np.ones((nodes, nodes), dtype=bool), 1)
    first = rng.random((nodes, nodes)) < share
    # An edge is kept with this probability, a gap becomes an edge with that one: the share stays as it is.
    keep, add = share + correlation * (1 - share), share * (1 - correlation)
    second = rng.random((nodes, nodes)) < np.where(first, keep, add)
    graphs = [np.where(upper, one, False).astype(float) for one in (first, second)]
    return graphs[0] + graphs[0].T, graphs[1] + graphs[1].T


def match_correlated(nodes: int, correlation: float, seeds: int = 10) -> Row:
    """Nodes right over the seeds, beside scipy's FAQ on the same graphs."""
    from scipy.optimize import quadratic_assignment as peer

    from quadmatch.graphs.match_graphs import match_graphs

    shares, others, seconds = [], [], 0.0
    for seed in range(seeds):
        a, b = correlate(nodes, correlation, seed)
        order = np.random.default_rng(1000 + seed).permutation(nodes)
        shuffled = b[np.ix_(order, order)]
        begun = time.process_time()
        result = match_graphs(a, shuffled)
        seconds += time.process_time() - begun
        pairs = np.asarray(result.pairs)  # type: ignore[union-attr]
        shares.append(100 * float((order[pairs[:, 1]] == pairs[:, 0]).mean()))
        found = peer(a, shuffled, options={"maximize": True}).col_ind
        others.append(100 * float((order[found] == np.arange(nodes)).mean()))
    return {
        "name": "match_graphs, correlated Erdős–Rényi graphs: % of nodes right",
        "size": f"n = {nodes}, correlation {correlation}, {seeds} seeds",
        "ours": float(np.mean(shares)),
        "peer": float(np.mean(others)),
        "required": 99.0,
        "met": float(np.mean(shares)) >= 99,
        "compared_with": "scipy's FAQ",
        "spread": float(np.std(shares)),
        "seconds_a_pair": seconds / seeds,
    }


def make_sparse(
    nodes: int = 2000, jitter: float = 0.01, seed: int = 0, channels: int = 4, noise: float = 0.2
) -> tuple[Any, Any, Matrix, NDArray[np.int64]]:
    """Delaunay graphs of points in the unit square and of a jittered copy, shuffled, with weak node features."""
    import torch
    from scipy.sparse import csr_array

    from quadmatch.delaunay import delaunay

    rng = np.random.default_rng(seed)
    points, order = rng.random((nodes, 2)), rng.permutation(nodes)
    moved = (points + rng.normal(0, jitter, points.shape))[order]
    features = rng.normal(size=(nodes, channels))
    noisy = (features + rng.normal(0, noise, features.shape))[order]
    graphs = [csr_array(delaunay(torch.from_numpy(one)).numpy()) for one in (points, moved)]
    return graphs[0], graphs[1], features @ noisy.T, order


def match_sparse(jitter: float, nodes: int = 2000, seed: int = 0, noise: float = 0.2) -> Row:
    """Nodes right with and without the edges, and the peak memory of the match."""
    from quadmatch.graphs.match_graphs import match_graphs

    a, b, unary, order = make_sparse(nodes, jitter, seed, noise=noise)

    def count(weight: float | None) -> float:
        pairs = np.asarray(match_graphs(a, b, unary, weight=weight).pairs)  # type: ignore[union-attr]
        return 100 * float((order[pairs[:, 1]] == pairs[:, 0]).sum()) / nodes

    alone = count(0.0)
    begun = time.process_time()
    right = count(None)
    seconds = time.process_time() - begun
    peak = measure_peak("quadmatch.bench.graphs", str(nodes), str(jitter), str(seed)) / 1e9
    spacing = 1 / np.sqrt(nodes)
    return {
        "name": "match_graphs, Delaunay of jittered points: % of nodes right",
        "size": f"n = {nodes}, jitter {100 * jitter:g} % of the square, {jitter / spacing:.1%} of the spacing",
        "ours": right,
        "peer": alone,
        "required": 95.0,
        "met": right >= 95 and alone <= 60 and peak < 2,
        "compared_with": "node features alone",
        "peak_gigabytes": peak,
        "seconds": seconds,
    }


def run() -> list[Row]:
    """Correlated random graphs, and sparse graphs of 2,000 nodes under two readings of a jitter of 1 %."""
    with one_thread():
        rows = [match_correlated(50, 0.9), match_correlated(100, 0.8)]
        # 1 % of the mean spacing, and 1 % of the whole square, which is 45 % of the spacing.
        return [*rows, match_sparse(0.01 / np.sqrt(2000)), match_sparse(0.01)]


if __name__ == "__main__":
    from quadmatch.graphs.match_graphs import match_graphs

    first, second, similarities, _ = make_sparse(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
    match_graphs(np.ones((3, 3)) - np.eye(3), np.ones((3, 3)) - np.eye(3))
    report_peak(lambda: match_graphs(first, second, similarities))
