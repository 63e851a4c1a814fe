"""Reweighted random walks beside pygmtools: the same affinities, here never as a matrix of n² × n²."""

from __future__ import annotations

import functools
import sys
import time
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from quadmatch.bench.measurement import Row, load_pygmtools, measure_peak, one_thread, report_peak, time_both, time_once
from quadmatch.delaunay import delaunay
from quadmatch.solvers.lawler.operator import EdgeAffinity, list_edges
from quadmatch.solvers.lawler.rrwm import rrwm
from quadmatch.solvers.linear.hungarian import hungarian

WIDTH = 0.01
"""Of the Gaussian that compares lengths of edges."""
SPEED, QUALITY, MEMORY = 20.0, 0.99, 50.0
Side = tuple[Tensor, Tensor]
"""Edges [B, E, 2] of one side and their lengths [B, E, 1]; the sides differ in E."""


def run(batch: int = 64, size: int = 50, rounds: int = 2) -> list[Row]:
    """Three rows: time, objective and peak memory of a batch of Delaunay graphs and their noisy copies."""
    pygmtools = load_pygmtools()
    with one_thread(), torch.no_grad():
        rows = _compare(pygmtools, batch, size, rounds)
    arguments = (str(batch), str(size))
    ours = measure_peak("quadmatch.bench.rrwm", "ours", *arguments)
    peer = measure_peak("quadmatch.bench.rrwm", "peer", *arguments)
    common = {"size": rows[0]["size"], "compared_with": rows[0]["compared_with"]}
    memory = {
        "name": "rrwm, peak bytes",
        "ours": ours,
        "peer": peer,
        "ratio": peer / max(ours, 1.0),
        "required": MEMORY,
        "met": peer >= MEMORY * ours,
    }
    return [*rows, memory | common]


def _compare(pygmtools: Any, batch: int, size: int, rounds: int) -> list[Row]:
    source, target = make_sides(batch, size)
    operator = compare_edges(source, target, size)

    def solve() -> Tensor:
        return rrwm(operator)

    warm_up = time_once(solve)
    start = time.process_time()
    matrix = build_matrix(pygmtools, source, target, size)
    building = time.process_time() - start

    def solve_peer() -> Tensor:
        return walk_matrix(pygmtools, matrix, size)

    ours, peer = time_both(solve, solve_peer, rounds=rounds, repeats=1)
    score, expected = (float(operator.score(hungarian(x())).mean()) for x in (solve, solve_peer))
    common = {"size": f"batch {batch}, n = {size}", "compared_with": f"pygmtools {pygmtools.__version__} (pytorch)"}
    speed = {
        "name": "rrwm",
        "ours_seconds": ours,
        "peer_seconds": peer,
        "ratio": peer / ours,
        "required": SPEED,
        "met": peer / ours >= SPEED,
        "warm_up_seconds": warm_up,
        "peer_matrix_seconds": building,
    }
    quality = {
        "name": "rrwm, objective",
        "ours": score,
        "peer": expected,
        "ratio": score / expected,
        "required": QUALITY,
        "met": score >= QUALITY * expected,
    }
    return [speed | common, quality | common]


def make_sides(batch: int, size: int) -> tuple[Side, Side]:
    """Edges and their lengths, of random points in the unit square and of the same with a jitter of 2 %."""
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(batch, size, 2, generator=generator)
    moved = points + 0.02 * torch.randn(batch, size, 2, generator=generator)
    return _triangulate(points), _triangulate(moved)


def _triangulate(points: Float[Tensor, "B N 2"]) -> Side:
    edges = list_edges(torch.stack([delaunay(places) for places in points]))
    ends = edges.clamp(min=0)[..., None].expand(-1, -1, -1, 2)
    start, end = (points.gather(1, ends[:, :, k]) for k in (0, 1))
    return edges, (end - start).norm(dim=-1, keepdim=True)


def compare_edges(source: Side, target: Side, size: int) -> EdgeAffinity:
    """Gaussian affinity of each pair of edges, in one array of edges × edges."""
    affinity = source[1] - target[1].transpose(1, 2)
    affinity.square_().div_(-WIDTH).exp_()
    return EdgeAffinity(torch.zeros(len(affinity), size, size), affinity, source[0], target[0])


def build_matrix(pygmtools: Any, source: Side, target: Side, size: int) -> Tensor:
    """The same affinity as pygmtools holds it: n² × n² numbers a pair."""
    sizes = torch.full((len(source[0]),), size)
    counts = [(edges[..., 0] >= 0).sum(1) for edges, _ in (source, target)]
    compare = functools.partial(pygmtools.utils.gaussian_aff_fn, sigma=WIDTH, backend="pytorch")
    (edges, length), (other_edges, other_length) = source, target
    graph = (None, length, edges.clamp(min=0), None, other_length, other_edges.clamp(min=0))
    matrix: Tensor = pygmtools.utils.build_aff_mat(
        *graph, sizes, counts[0], sizes, counts[1], edge_aff_fn=compare, backend="pytorch"
    )
    return matrix


def walk_matrix(pygmtools: Any, matrix: Tensor, size: int) -> Tensor:
    """Their reweighted random walk with its defaults."""
    sizes = torch.full((len(matrix),), size)
    found: Tensor = pygmtools.rrwm(matrix, sizes, sizes, backend="pytorch")
    return found


def _measure_memory(whose: str, batch: int, size: int) -> None:
    """What this process adds to itself: everything is loaded and compiled before it counts."""
    pygmtools = load_pygmtools()
    source, target = make_sides(batch, size)
    little = tuple((edges[:1], length[:1]) for edges, length in (source, target))
    rrwm(compare_edges(little[0], little[1], size), iterations=1)

    def solve() -> Tensor:
        if whose == "ours":
            return rrwm(compare_edges(source, target, size))
        return walk_matrix(pygmtools, build_matrix(pygmtools, source, target, size), size)

    report_peak(solve)


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.no_grad():
        _measure_memory(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
