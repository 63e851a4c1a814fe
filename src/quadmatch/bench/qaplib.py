"""`quadratic_assignment` beside scipy's FAQ on QAPLIB: gap to the best known value, and processor time."""

from __future__ import annotations

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
        raise ValueError(
            f"{path.name}: {size}×{size} twice needs {2 * size * size} numbers, got {len(numbers) - 1}"
        )
    a, b = numbers[1 : 1 + 2 * size * size].reshape(2, size, size)
    solution = path.with_suffix(".sln")
    best = float(_read_numbers(solution)[1]) if solution.exists() else None
    return Instance(path.stem, a, b, best)


def _read_numbers(path: Path) -> Matrix:
    try:
        return np.array(path.read_text().replace(",", " ").split(), dtype=float)
    except ValueError as error:
        raise ValueError(f"{path.name} is not in QAPLIB's format: {error}") from None


def run(folder: Path, seeds: int = 5) -> list[Row]:
    """A row for each quality over all instances of at most 60 nodes with a known value that is not zero."""
    instances = [read_qaplib(path) for path in sorted(Path(folder).rglob("*.dat"))]
    instances = [one for one in instances if len(one.a) <= LARGEST and one.best]
    if not instances:
        raise ValueError(f"{folder}: no QAPLIB instance with a known value that is not zero")
    with one_thread():
        return [row for quality in QUALITIES for row in compare(instances, quality, seeds)]


def compare(instances: list[Instance], quality: str, seeds: int) -> list[Row]:
    """Gap and time of one quality beside FAQ at its defaults, both in this process and on these instances."""
    from scipy.optimize import quadratic_assignment as peer

    from quadmatch.quadratic_assignment import quadratic_assignment

    def solve(one: Instance, seed: int) -> float:
        options = {"rng": seed, "quality": quality}
        return float(quadratic_assignment(one.a, one.b, options=options).fun)

    warm_up = time_once(lambda: solve(instances[0], 0))
    peer(instances[0].a, instances[0].b)
    theirs = [float(peer(one.a, one.b).fun) for one in instances]
    found = np.array([[solve(one, seed) for one in instances] for seed in range(seeds)])
    best = np.array([one.best for one in instances])
    gaps, other_gaps = 100 * (found / best - 1), 100 * (np.array(theirs) / best - 1)
    ours_seconds = time_once(lambda: [solve(one, 0) for one in instances])
    peer_seconds = time_once(lambda: [peer(one.a, one.b) for one in instances])
    mean, required = float(gaps[0].mean()), 1.0 if quality == "best" else float(other_gaps.mean()) / 2
    ratio, allowed = ours_seconds / peer_seconds, QUALITIES[quality]
    worse = int((found[0] > np.array(theirs) * (1 + 1e-12)).sum())
    size, name = f"{len(instances)} instances, n ≤ {LARGEST}", f"QAPLIB, quality {quality}"
    median_met = quality != "best" or float(np.median(gaps[0])) == 0
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
            "ours_seconds": ours_seconds,
            "peer_seconds": peer_seconds,
            "ratio": ratio,
            "required": allowed,
            "met": ratio <= allowed,
            "warm_up_seconds": warm_up,
        },
    ]
