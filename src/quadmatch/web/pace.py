"""How long matches take: what a pair costs, and how fast this machine was of late."""

from __future__ import annotations

from typing import NamedTuple

from quadmatch.datasets.picture import Picture
from quadmatch.datasets.spans import compare_spans
from quadmatch.datasets.turning import AS_GIVEN, list_orientations
from quadmatch.decode import LARGE

SMALLEST = 500
"""What a pair without points costs, in the unit of `Cost.small`."""
MEMORY = 30.0
"""Seconds of work that a rate remembers."""
PRIOR = 0.5
"""Seconds of work that `FIRST` counts as."""


class Cost(NamedTuple):
    """What is to be done for a pair, in units whose seconds are measured."""

    pictures: float = 0.0
    """To be convolved."""
    small: float = 0.0
    """Squared nodes of a graph, in all ways in which pairs are tried."""
    large: float = 0.0
    """The same of pairs with so many points that their search is shortened."""


FIRST = Cost(0.4, 4e-5, 5e-6)
"""Seconds of a unit before any was measured: those of the default model on one core."""


def measure_cost(source: Picture, target: Picture, orientation: str) -> Cost:
    """What `match_jobs` will do for a pair if neither picture was seen before; the pictures' pixels are not needed."""
    tried = list_orientations(orientation)
    times = 2 if compare_spans(source, target) else 1
    pictures = float(times * (2 + sum(one != AS_GIVEN for one in tried)))
    nodes, others = len(source.keypoints.points), len(target.keypoints.points)
    squares = times * len(tried) * (SMALLEST + (nodes**2 + others**2) / 2)
    return Cost(pictures, 0.0, squares) if nodes * others > LARGE else Cost(pictures, squares)


class Rate:
    """Seconds that a unit takes: the work of late and what it took, so that much work counts more than little."""

    def __init__(self, first: float) -> None:
        self.first, self.seconds, self.units = first, 0.0, 0.0

    def estimate(self, slowness: float = 1.0) -> float:
        """Seconds of one unit, on a machine that much slower than the one where `FIRST` was measured."""
        return (PRIOR * slowness + self.seconds) / (PRIOR / self.first + self.units)

    def add(self, units: float, seconds: float) -> None:
        """Remember some work; what was before is forgotten by and by."""
        kept = min(1.0, MEMORY / (self.seconds + seconds)) if seconds else 1.0
        self.seconds, self.units = kept * (self.seconds + seconds), kept * (self.units + units)


class Pace:
    """How fast one model was of late."""

    def __init__(self) -> None:
        self.rates = tuple(Rate(first) for first in FIRST)

    @property
    def slowness(self) -> float:
        """How much slower than `FIRST` work was of late; what was not measured is taken to be as slow, never faster."""
        known = sum(rate.units * rate.first for rate in self.rates)
        return max(1.0, (PRIOR + sum(rate.seconds for rate in self.rates)) / (PRIOR + known))

    def expect(self, cost: Cost) -> float:
        """Seconds that some work will take."""
        slowness = self.slowness
        return sum(rate.estimate(slowness) * units for rate, units in zip(self.rates, cost))

    def add(self, cost: Cost, seconds: float) -> None:
        """Remember that some work took so long; each kind of it has the share that was expected."""
        expected = [rate.estimate() * units for rate, units in zip(self.rates, cost)]
        for rate, units, share in zip(self.rates, cost, expected):
            if units:
                rate.add(units, seconds * share / sum(expected))
