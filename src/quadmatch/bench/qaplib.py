"""`quadratic_assignment` beside scipy's FAQ on QAPLIB: gap to the best known value, and processor time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadmatch.bench.measurement import Row, one_thread, time_once

Matrix = NDArray[np.float64]
LARGEST = 60
QUALITIES = {"best": 30.0, "fast": 3.0}
"""How many times FAQ's processor time each quality may take."""


class Instance(NamedTuple):
    """A problem and the best value that is known of it."""

    name: str
    a: Matrix
    b: Matrix
    best: float | None


def read_qaplib(path: Path) -> Instance:
    """An instance from QAPLIB's `.dat` file, and the best known value from the `.sln` beside it, if there is one."""
    numbers = _read_numbers(path)
    size = int(numbers[0]) if len(numbers) else 0
    if len(numbers) < 1 + 2 * size * size:
        raise ValueError(f"{path.name}: {size}×{size} twice needs {2 * size * size} numbers, got {len(numbers) - 1}")
    a, b = numbers[1 : 1 + 2 * size * size].reshape(2, size, size)
    solution = path.with_suffix(".sln")
    best = float(_read_numbers(solution)[1]) if solution.exists() else None
    return Instance(path.stem, a, b, best)


def _read_numbers(path: Path) -> Matrix:
    try:
        return np.array(path.read_text().replace(",", " ").split(), dtype=float)
    except ValueError as error:
        raise ValueError(f"{path.name} is not in QAPLIB's format: {error}") from None


def run(folder: Path, seeds: int = 5, say: Callable[[str], object] | None = None) -> list[Row]:
    """Two rows for each quality over all instances of at most 60 nodes with a known value that is not zero.

    Each instance is a line for `say`: its gap and processor time, ours and FAQ's.
    """
    instances = [read_qaplib(path) for path in sorted(Path(folder).rglob("*.dat"))]
    instances = [one for one in instances if len(one.a) <= LARGEST and one.best]
    if not instances:
        raise ValueError(f"{folder}: no QAPLIB instance with a known value that is not zero")
    with one_thread():
        return [row for quality in QUALITIES for row in compare(instances, quality, seeds, say)]


def compare(
    instances: list[Instance], quality: str, seeds: int, say: Callable[[str], object] | None = None
) -> list[Row]:
    """Gap and time of one quality beside FAQ at its defaults, both in this process and on these instances."""
    from scipy.optimize import quadratic_assignment as peer

    from quadmatch.graphs.quadratic_assignment import quadratic_assignment

    def solve(one: Instance, seed: int) -> float:
        options = {"rng": seed, "quality": quality}
        return float(quadratic_assignment(one.a, one.b, options=options).fun)

    def relax(one: Instance) -> float:
        return float(peer(one.a, one.b, options={"rng": np.random.default_rng(0)}).fun)

    warm_up = time_once(lambda: solve(instances[0], 0))
    best = np.array([one.best for one in instances])
    found = np.array([[solve(one, seed) for one in instances] for seed in range(seeds)])
    theirs = np.array([relax(one) for one in instances])
    gaps, other_gaps = 100 * (found / best - 1), 100 * (theirs / best - 1)
    seconds = np.array([[time_once(partial(solve, one, 0)), time_once(partial(relax, one))] for one in instances])
    for one, gap, other, (ours, others) in zip(instances, gaps[0], other_gaps, seconds):
        if say is not None:
            say(f"{one.name}: {quality} {gap:.2f} % in {ours:.4f} s, FAQ {other:.2f} % in {others:.4f} s")
    return summarise(quality, gaps, other_gaps, seconds.sum(axis=0), warm_up)


def summarise(quality: str, gaps: Matrix, other_gaps: Matrix, seconds: Matrix, warm_up: float) -> list[Row]:
    """A row for gaps [seed, instance] and one for processor seconds, ours and FAQ's."""
    mean, required = float(gaps[0].mean()), 1.0 if quality == "best" else float(other_gaps.mean()) / 2
    worse = int((gaps[0] > other_gaps + 1e-9).sum())
    median_met = quality != "best" or float(np.median(gaps[0])) <= 1e-9
    size, name = f"{len(other_gaps)} instances, n ≤ {LARGEST}", f"QAPLIB, quality {quality}"
    return [
        {
            "name": f"{name}: mean gap in %, beside scipy's FAQ",
            "size": size,
            "ours": mean,
            "peer": float(other_gaps.mean()),
            "required": required,
            "met": mean <= required and median_met and not worse,
            "median": float(np.median(gaps[0])),
            "largest": float(gaps[0].max()),
            "mean_over_seeds": float(gaps.mean()),
            "spread_over_seeds": float(gaps.mean(1).std()),
            "instances_worse_than_FAQ": worse,
        },
        {
            "name": f"{name}: processor time over scipy's FAQ (at most)",
            "size": size,
            "ours_seconds": float(seconds[0]),
            "peer_seconds": float(seconds[1]),
            "ratio": float(seconds[0] / seconds[1]),
            "required": QUALITIES[quality],
            "met": bool(seconds[0] <= QUALITIES[quality] * seconds[1]),
            "warm_up_seconds": warm_up,
        },
    ]
