"""Sinkhorn beside pygmtools: the same scores, number of iterations and result."""

from __future__ import annotations

from typing import Any

import torch

from quadmatch.bench.measurement import Row, load_pygmtools, one_thread, time_both, time_once
from quadmatch.solvers.linear.sinkhorn import sinkhorn

REQUIRED = {10: 15.0, 20: 10.0, 50: 4.0}
ITERATIONS = 10
"""What a call of pygmtools makes if it is not told otherwise."""


def run(batch: int = 64, sizes: tuple[int, ...] = (10, 20, 50), rounds: int = 7) -> list[Row]:
    """One row a size: ours beside the faster of pygmtools' numpy and PyTorch backends."""
    pygmtools = load_pygmtools()
    with one_thread(), torch.no_grad():
        return [_compare(pygmtools, batch, size, rounds) for size in sizes]


def _compare(pygmtools: Any, batch: int, size: int, rounds: int) -> Row:
    scores = torch.rand(batch, size, size, generator=torch.Generator().manual_seed(size))
    array = scores.numpy()

    def solve() -> torch.Tensor:
        return sinkhorn(scores, temperature=1.0, iterations=ITERATIONS)

    peers = {
        "pytorch": lambda: pygmtools.sinkhorn(scores, backend="pytorch"),
        "numpy": lambda: pygmtools.sinkhorn(array, backend="numpy"),
    }
    warm_up = time_once(solve)
    difference = float((solve() - peers["pytorch"]()).abs().max())
    times = {name: time_both(solve, peer, rounds=rounds, repeats=20) for name, peer in peers.items()}
    backend = min(times, key=lambda name: times[name][1])
    ours, peer = min(pair[0] for pair in times.values()), times[backend][1]
    required = REQUIRED.get(size)
    return {
        "name": "sinkhorn",
        "size": f"batch {batch}, n = {size}",
        "ours_seconds": ours,
        "peer_seconds": peer,
        "ratio": peer / ours,
        "required": required,
        "met": difference <= 1e-4 and (required is None or peer / ours >= required),
        "compared_with": f"pygmtools {pygmtools.__version__} ({backend})",
        "largest_difference": difference,
        "warm_up_seconds": warm_up,
    }
