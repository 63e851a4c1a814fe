"""How time and memory grow with the number of nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch import Tensor

from quadmatch.bench.measurement import Row, measure_peak, one_thread, report_peak, time_once

SIZES = (10, 20, 50, 100, 200, 500)
PARTS = ("sinkhorn", "hungarian", "frank_wolfe", "frank_wolfe_hard", "rrwm", "match_graphs", "quadratic_assignment")


def make_call(part: str, nodes: int) -> Callable[[], object]:
    """A call of that solver on one pair of Delaunay graphs with `nodes` nodes, one of them jittered."""
    from quadmatch.delaunay import delaunay

    generator = torch.Generator().manual_seed(nodes)
    points = 256 * torch.rand(nodes, 2, generator=generator)
    moved = points + torch.randn(nodes, 2, generator=generator)
    a, b = delaunay(points)[None].float(), delaunay(moved)[None].float()
    unary = torch.eye(nodes)[None] + 0.5 * torch.rand(1, nodes, nodes, generator=generator)
    return _bind(part, a, b, unary)


def _bind(part: str, a: Tensor, b: Tensor, unary: Tensor) -> Callable[[], object]:
    from quadmatch.graphs.match_graphs import match_graphs
    from quadmatch.graphs.quadratic_assignment import quadratic_assignment
    from quadmatch.solvers.lawler.operator import NodeSumAffinity
    from quadmatch.solvers.lawler.rrwm import rrwm
    from quadmatch.solvers.linear.hungarian import hungarian
    from quadmatch.solvers.linear.sinkhorn import sinkhorn
    from quadmatch.solvers.quadratic.frank_wolfe import frank_wolfe
    from quadmatch.solvers.quadratic.frank_wolfe_hard import frank_wolfe_hard

    first, second = a[0].double().numpy(), b[0].double().numpy()
    options = {"rng": 0, "maximize": True}
    calls: dict[str, Callable[[], object]] = {
        "sinkhorn": lambda: sinkhorn(unary),
        "hungarian": lambda: hungarian(unary),
        "frank_wolfe": lambda: frank_wolfe(unary, a, b),
        "frank_wolfe_hard": lambda: frank_wolfe_hard(unary, a, b),
        "rrwm": lambda: rrwm(NodeSumAffinity(unary, unary, torch.zeros_like(unary), a, b)),
        "match_graphs": lambda: match_graphs(first, second),
        "quadratic_assignment": lambda: quadratic_assignment(first, second, options=options),
    }
    return calls[part]


def run(sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """Processor milliseconds on one thread and peak megabytes of each solver at each size; nothing is required."""
    rows: list[Row] = []
    with one_thread(), torch.no_grad():
        for part in PARTS:
            make_call(part, 8)()
            for nodes in sizes:
                call = make_call(part, nodes)
                seconds = min(time_once(call) for _ in range(3 if nodes < 200 else 1))
                peak = measure_peak("quadmatch.bench.scaling", part, str(nodes))
                rows.append(
                    {
                        "name": f"scaling of {part}",
                        "size": f"n = {nodes}",
                        "ours_seconds": seconds,
                        "peak_megabytes": round(peak / 1e6, 2),
                    }
                )
    return rows


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.no_grad():
        make_call(sys.argv[1], 8)()
        big = make_call(sys.argv[1], int(sys.argv[2]))
        report_peak(big)
