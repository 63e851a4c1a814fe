"""Boxes: the part of a picture to look at, parsed, checked, clipped or chosen around keypoints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

Box = tuple[float, float, float, float]
"""(x0, y0, x1, y1) in pixels of the upright picture."""

MARGIN = 0.15
"""Added on each side of the keypoints' box, as a share of its longer side."""
NARROWEST = 0.5
"""Shorter over longer side of such a box, at least: points on a line still see what is around them."""


def parse_box(stored: Any, name: str, *, extent: bool = False) -> Box:
    """Four numbers, in a list or in a text, as a box; with `extent` they are x, y, width and height."""
    words = stored.replace(",", " ").replace(";", " ").split() if isinstance(stored, str) else stored
    try:
        x0, y0, x1, y1 = (float(word) for word in words)
    except (TypeError, ValueError, OverflowError):
        form = "x, y, width, height, as in 10,20,300,200" if extent else "x0, y0, x1, y1"
        raise ValueError(f"{name} must be {form}; got {stored!r:.80}") from None
    if extent and not min(x1, y1) > 0:
        raise ValueError(f"{name} must have a positive width and height; got {stored!r:.80}")
    return check_box((x0, y0, x0 + x1, y0 + y1) if extent else (x0, y0, x1, y1), name)


def check_box(box: Any, name: str) -> Box:
    """The box as four numbers, if it is one."""
    try:
        x0, y0, x1, y1 = (float(side) for side in box)
    except (TypeError, ValueError, OverflowError):
        x0 = y0 = x1 = y1 = math.nan
    if not (-math.inf < x0 < x1 < math.inf and -math.inf < y0 < y1 < math.inf):
        raise ValueError(f"{name} needs (x0, y0, x1, y1) with x0 < x1 and y0 < y1; got {box!r:.80}")
    return x0, y0, x1, y1


def clip_box(box: Box, width: int, height: int) -> Box:
    """The part of a box that lies in a picture of the given size."""
    return (max(box[0], 0.0), max(box[1], 0.0), min(box[2], float(width)), min(box[3], float(height)))


def choose_box(points: Float[np.ndarray, "K 2"], width: int, height: int, box: Any = None, name: str = "box") -> Box:
    """The part of the given box in the picture; without one, the keypoints' box with a margin.

    The whole picture where that says nothing: no two different points, or none near the picture.
    """
    whole = 0.0, 0.0, float(width), float(height)
    if box is not None:
        low, high = np.split(np.array(check_box(box, name)), 2)
    elif len(points) and (extent := points.max(0) - points.min(0)).max() > 0:
        longer = extent.max()
        half = np.maximum(extent / 2 + MARGIN * longer, NARROWEST * (0.5 + MARGIN) * longer)
        centre = (points.max(0) + points.min(0)) / 2
        low, high = centre - half, centre + half
    else:
        return whole
    x0, y0, x1, y1 = clip_box((*low.tolist(), *high.tolist()), width, height)
    if min(x1 - x0, y1 - y0) >= 1:
        return x0, y0, x1, y1
    if box is not None:
        raise ValueError(f"{name} {tuple(box)} has less than a pixel in the picture of {width} × {height}")
    return whole
