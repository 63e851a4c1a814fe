"""Which keypoints of a pair take part, and what a test adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quadmatch.datasets.annotation import Annotation, find_box
from quadmatch.datasets.hashing import hash_text, mix, uniform

PROTOCOLS = ("intersection", "inclusion", "unfiltered")
"""Keypoints that both have; the source's that the target has too against all of the target's; all of both."""
MINIMUM = 3
"""Common keypoints that a pair needs, except under "unfiltered"."""
OUTLIER = "outlier/"
"""Names that begin like this are of points that match nothing."""
BETWEEN = "between/"
"""Names that begin like this are of points between two keypoints."""
ADDED = (OUTLIER, BETWEEN)
"""How the names of points begin that nobody has annotated."""


def check_protocol(protocol: str) -> None:
    """Refuse an unknown protocol by name."""
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {protocol!r}")


def add_outliers(
    annotations: Sequence[Annotation], count: int, kind: str = "normal", *, seed: int = 0, size: int = 256
) -> list[Annotation]:
    """Each object with `count` more points that match nothing, a function of its name and the seed.

    In the frame of `size` × `size` pixels: "normal" is the paper's N(0, 10²), around the frame's corner;
    "uniform" is anywhere in the frame.
    """
    if kind not in ("normal", "uniform"):
        raise ValueError(f'kind of outliers must be "normal" or "uniform", got {kind!r}')
    if count < 0:
        raise ValueError(f"count of outliers must not be negative, got {count}")
    return [_add_outliers(one, count, kind, seed, size) for one in annotations]


def _add_outliers(annotation: Annotation, count: int, kind: str, seed: int, size: int) -> Annotation:
    key = hash_text("outliers", kind, seed, annotation.name)
    numbers = uniform(mix(key, np.arange(2 * count, dtype=np.uint64))).reshape(count, 2)
    if kind == "uniform":
        extra = size * numbers
    else:  # Box and Muller: two independent normal numbers from two uniform ones
        radius, angle = 10 * np.sqrt(-2 * np.log(numbers[:, 0])), 2 * np.pi * numbers[:, 1]
        extra = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    x0, y0, x1, y1 = find_box(annotation)
    extra = np.array([x0, y0]) + extra * np.array([x1 - x0, y1 - y0]) / size
    names = tuple(f"{OUTLIER}{number}" for number in range(count))
    return replace(annotation, names=annotation.names + names, points=np.concatenate([annotation.points, extra]))
