"""Pairs to try: photographs that scikit-image carries, each in two warped views with known truth."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from quadmatch.datasets.photo_pairs import PhotoPair, pair_views
from quadmatch.datasets.photo_warps import find_corners, find_photographs


class Example(NamedTuple):
    """A photograph, and which two views of it are shown."""

    title: str
    file: str
    numbers: tuple[int, int]
    bent: float
    """Strength of the warp."""


# Four in which the constraint shows with the default model, and one in which it is not needed.
EXAMPLES = {
    "cat": Example("Cat", "chelsea.png", (2, 3), 2.4),  # 18 of 18 right, 12 without the constraint
    "motorcycle": Example("Motorcycle", "motorcycle_left.png", (0, 1), 2.4),  # 19 of 19, none without
    "page": Example("Printed page", "page.png", (6, 7), 2.4),  # 26 of 26, 13 without
    "astronaut": Example("Astronaut", "astronaut.png", (0, 1), 2.4),  # 14 of 14, 12 without
    "coffee": Example("Coffee", "coffee.png", (2, 3), 2.4),  # 18 of 18 either way
}
"""By the name that is in their addresses."""
SIZE, CORNERS, BORDER = 400, 40, 6.0
RELIT, PAPER = 0.8, 0.62
"""Strength of the change of light, and the brightness beyond the photograph's edge."""


def list_examples() -> list[dict[str, str]]:
    """Names of the examples for which this installation has the photographs."""
    try:
        folder = find_photographs()
    except ModuleNotFoundError:
        return []
    return [{"name": name, "title": one.title} for name, one in EXAMPLES.items() if (folder / one.file).is_file()]


@lru_cache(maxsize=len(EXAMPLES))
def make_example(name: str) -> PhotoPair:
    """The pair of an example; the same each time."""
    one = EXAMPLES[name]
    corners = find_corners(one.file, CORNERS)
    return pair_views(
        one.file, corners, one.numbers, size=SIZE, strength=one.bent, light=RELIT, border=BORDER, outside=PAPER
    )


def describe_example(name: str) -> dict[str, Any]:
    """Keypoints of both pictures of an example, and which belong together."""
    pair = make_example(name)
    points = {f"points_{side}": np.round(own, 1).tolist() for side, own in zip("ab", (pair.points_a, pair.points_b))}
    return {"name": name, **points, "truth": list(enumerate(pair.truth.tolist()))}


@lru_cache(maxsize=2 * len(EXAMPLES))
def draw_example(name: str, side: str) -> bytes:
    """Picture `a` or `b` of an example, as PNG."""
    from PIL import Image

    pair, buffer = make_example(name), BytesIO()
    Image.fromarray(pair.picture_a if side == "a" else pair.picture_b).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
