"""Pairs to try: photographs that scikit-image carries, each in two warped views with known truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO

import numpy as np
from jaxtyping import Float, Int

EXAMPLES = {
    "cat": ("chelsea.png", "Cat"),
    "rocket": ("rocket.jpg", "Rocket"),
    "coffee": ("coffee.png", "Coffee"),
    "motorcycle": ("motorcycle_left.png", "Motorcycle"),
    "page": ("page.png", "Printed page"),
}
"""A name for addresses: the file, and a name for people."""
SIZE, CORNERS, BORDER = 400, 40, 6.0
BENT, RELIT = 2.2, 0.8
"""Strengths of the warp, hard enough to need the constraint, and of the change of light."""


@dataclass(frozen=True, eq=False)
class Example:
    """Two views as PNG, their keypoints in different orders, and which belong together."""

    pictures: tuple[bytes, bytes]
    points: tuple[Float[np.ndarray, "K 2"], Float[np.ndarray, "K 2"]]
    truth: Int[np.ndarray, "K 2"]


def list_examples() -> list[dict[str, str]]:
    """Names of the examples for which this installation has the photographs."""
    from quadmatch.datasets.photo_warps import find_photographs

    try:
        folder = find_photographs()
    except ModuleNotFoundError:
        return []
    return [
        {"name": name, "title": title}
        for name, (file, title) in EXAMPLES.items()
        if (folder / file).is_file()
    ]


@lru_cache(maxsize=len(EXAMPLES))
def make_example(name: str) -> Example:
    """Render an example; the same each time."""
    from PIL import Image

    from quadmatch.datasets.photo_warps import draw_view, find_corners

    file, _ = EXAMPLES[name]
    views = [replace(draw_view(file, 0, number, SIZE, BENT), strength=RELIT) for number in (0, 1)]
    places = [view.find(find_corners(file, CORNERS)) for view in views]
    seen = np.logical_and.reduce([((p > BORDER) & (p < SIZE - BORDER)).all(1) for p in places])
    first, second = (np.round(place[seen], 1) for place in places)
    order = np.random.default_rng(len(first)).permutation(len(first))
    pictures = []
    for view in views:
        buffer = BytesIO()
        Image.fromarray(view()).save(buffer, "PNG", compress_level=1)
        pictures.append(buffer.getvalue())
    truth = np.stack([order, np.arange(len(order))], 1)
    return Example((pictures[0], pictures[1]), (first, second[order]), truth[np.argsort(order)])
