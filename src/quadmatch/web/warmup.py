"""The first match of a process is slow; better at the start than for the first client."""

from __future__ import annotations

import numpy as np

from quadmatch.matcher import Matcher


def warm_up(matcher: Matcher) -> None:
    """Match a small picture to itself, so that what is loaded or compiled on first use is there."""
    random = np.random.default_rng(0)
    picture = random.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    points = random.uniform(8, 56, (12, 2))
    for constraint in (True, False):
        matcher.match(picture, points, picture, points, constraint=constraint)
