"""Two rows of a table set against each other on the same pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

DRAWS = 10_000
Result = Mapping[str, Any]
"""An evaluation as `evaluate_once` gives it, with `by_pair`: right and true matches of each pair, by class."""


@dataclass(frozen=True)
class Comparison:
    """What the first row has more than the second, in points of the mean over classes."""

    gain: float
    low: float
    high: float
    """95 % interval of the gain, pairs drawn again with replacement within each class."""
    p: float
    """How often a gain of that size, up or down, comes from exchanging the two at random in each pair."""
    better: int
    """Classes in which the first is better."""
    classes: int

    def __str__(self) -> str:
        chance = f"p = {self.p:.3f}" if self.p >= 0.001 else "p < 0.001"
        return (
            f"{self.gain:+.1f} ({self.low:+.1f} to {self.high:+.1f}, {chance}), "
            f"better in {self.better} of {self.classes} classes"
        )


def compare_rows(first: Sequence[Result], second: Sequence[Result], seed: int = 0) -> Comparison:
    """Accuracy of one row's seeds against another's on the same pairs, each pair's mean over seeds as one draw.

    Pairs share pictures, and seeds share pairs, so that the interval is of these pictures and no others.
    """
    shares = [_weigh_gains(name, first, second) for name in first[0]["by_pair"]]
    generator = np.random.default_rng(seed)
    again, exchanged = np.zeros(DRAWS), np.zeros(DRAWS)
    for gains in shares:
        # One class after the other, and few draws at a time: all at once would be gigabytes.
        for start in range(0, DRAWS, 500):
            size = (500, len(gains))
            again[start : start + 500] += gains[generator.integers(len(gains), size=size)].sum(1)
            exchanged[start : start + 500] += generator.choice([-1.0, 1.0], size) @ gains
    totals = np.array([gains.sum() for gains in shares])
    gain, count = float(totals.mean()), len(shares)
    low, high = np.percentile(again / count, [2.5, 97.5])
    p = (1 + np.count_nonzero(np.abs(exchanged / count) >= abs(gain) - 1e-9)) / (1 + DRAWS)
    return Comparison(gain, float(low), float(high), float(p), int((totals > 0).sum()), count)


def _weigh_gains(name: str, first: Sequence[Result], second: Sequence[Result]) -> Float[np.ndarray, " P"]:
    """What each pair of a class adds to the first row's gain in points of that class's accuracy."""
    ours, theirs = (np.mean([one["by_pair"][name]["right"] for one in row], axis=0) for row in (first, second))
    true = np.asarray(first[0]["by_pair"][name]["true"], dtype=np.float64)
    gains: Float[np.ndarray, " P"] = 100 * (ours - theirs) / max(true.sum(), 1.0)
    return gains
