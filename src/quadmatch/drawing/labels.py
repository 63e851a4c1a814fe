"""Numbers or names beside points, each where it covers the least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.drawing.canvas import DARK, make_rim

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = NDArray[np.float64]

MOST_LABELLED = 60
"""Points of a picture up to which they are labelled: more labels than that hide what they name."""
SIZE = 7.5
"""Height of the letters, in points of print."""
LETTER = 0.58
"""Width of a letter beside its height."""
LONGEST = 14
"""Letters of a name that are shown."""
WAYS = np.array([[0, -1], [0, 1], [1, -1], [-1, -1], [1, 1], [-1, 1], [1, 0], [-1, 0]], dtype=np.float64)
"""Directions of a label from its point, y downwards; at its sides, where the lines of the match run, only at last."""


def label_points(axes: Axes, points: Points, labels: Sequence[str], radius: float, unit: float) -> None:
    """Write each label beside its point, a disc; its `radius` and a `unit` of the axes are in points of print."""
    words = [text if len(text) <= LONGEST else text[: LONGEST - 1] + "…" for text in labels]
    style: dict[str, Any] = {"fontsize": SIZE, "color": DARK, "ha": "center", "va": "center", "zorder": 6}
    for text, (x, y) in zip(words, place_labels(points * unit, words, radius) / unit):
        # Points may lie outside of a picture: their labels must not take room there.
        axes.text(x, y, text, clip_on=True, path_effects=make_rim("white", 1.8, 0.9), **style)


def place_labels(points: Points, labels: Sequence[str], radius: float) -> Points:
    """Centres of the labels: one after the other where it covers the least of points and of labels before it."""
    halves = np.array([[LETTER * SIZE * max(len(text), 1) / 2, SIZE / 2] for text in labels]).reshape(-1, 2)
    taken, sizes = points.copy(), np.full_like(points, radius)
    centres = np.zeros_like(points)
    for number, (point, half) in enumerate(zip(points, halves)):
        # On a diagonal the corner of the label touches the disc, which is nearer than its sides.
        reach = radius * np.where(np.abs(WAYS).sum(1, keepdims=True) == 2, 0.75, 1.0) + 1.0
        tried = point + WAYS * (half + reach)
        covered = _overlap(tried, half, taken, sizes).sum(1)
        centres[number] = tried[np.argmin(covered + 0.01 * np.arange(len(WAYS)))]
        taken, sizes = np.vstack([taken, centres[number]]), np.vstack([sizes, half])
    return centres


def _overlap(tried: Points, half: Points, taken: Points, sizes: Points) -> Points:
    """The area that a label at each tried place shares with each box that is taken."""
    apart = np.abs(tried[:, None] - taken[None])
    shared: Points = np.minimum(half + sizes - apart, 2 * np.minimum(half, sizes)).clip(min=0).prod(-1)
    return shared
