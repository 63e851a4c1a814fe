"""One side of a pair of a user's own pictures: the file, its keypoints, and the part to look at."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from quadmatch.keypoints import Keypoints, make_keypoints, read_keypoints
from quadmatch.pictures import Box, find_box, read_pixels
from quadmatch.subjects import Request


@dataclass(frozen=True, eq=False)
class Side:
    """What is known of one picture of a pair."""

    image: str
    """The file, as the user named it."""
    source: str | None
    """The file of keypoints, as the user named it; None where they were detected."""
    keypoints: Keypoints
    size: tuple[int, int]
    """Width and height of the upright picture."""
    pixels: UInt8[np.ndarray, "H W 3"] | None
    """None once its features are computed and it is not to be drawn."""
    warnings: tuple[str, ...] = ()

    def request(self, name: str) -> Request:
        """What a Matcher needs of it; `name` is what errors call it."""
        return Request(self.pixels, self.keypoints.points, self.keypoints.box, name)


def parse_box(text: str | None, name: str) -> Box | None:
    """`x,y,w,h` as (x0, y0, x1, y1); commas, semicolons or spaces divide the numbers."""
    if text is None or not text.strip():
        return None
    try:
        x, y, width, height = (float(word) for word in text.replace(",", " ").replace(";", " ").split())
    except ValueError:
        needed = "x,y,w,h (corner, width, height), as in 10,20,300,200"
        raise ValueError(f"{name} must be {needed}; got {text!r}") from None
    if not np.isfinite([x, y, width, height]).all() or min(width, height) <= 0:
        raise ValueError(f"{name} must be x,y,w,h with a positive width and height, got {text!r}")
    return x, y, x + width, y + height


def load_side(
    image: str,
    points: str | None,
    box: Box | None = None,
    *,
    count: int | None = None,
    name: str = "image",
    folder: Path | None = None,
) -> Side:
    """The picture and its keypoints, from a file or, with a `count`, detected; paths are below `folder`."""
    place = (folder or Path()) / Path(image).expanduser()
    if points is None and count is None:
        raise ValueError(
            f"{name} {image} has no keypoints: name a file, or let them be detected (--detect 40)"
        )
    stored = None if points is None else read_keypoints(_below(folder, points), place)
    pixels = read_pixels(place, name)
    warnings: list[str] = []
    if stored is None:
        from quadmatch.detection import describe_shortage, find_corners

        assert count is not None
        keypoints = make_keypoints(find_corners(pixels, count, box), None, box)
        if len(keypoints.points) < count:
            warnings.append(describe_shortage(len(keypoints.points), count, f"{name} ({image})"))
    else:
        keypoints = stored if box is None else replace(stored, box=box)
    size = pixels.shape[1], pixels.shape[0]
    warnings += check_places(keypoints, *size, f"{name} ({image})")
    return Side(image, points, keypoints, size, pixels, tuple(warnings))


def _below(folder: Path | None, path: str) -> str:
    """A path of a user from a folder; an annotation's id at its end (`#17`) stays there."""
    return os.fspath((folder or Path()) / Path(path).expanduser())


def check_places(keypoints: Keypoints, width: int, height: int, name: str) -> Sequence[str]:
    """What is doubtful about where keypoints are; an error where they belong to another picture."""
    points, box = keypoints.points, keypoints.box
    if box is not None:
        find_box(points, width, height, box, f"box of {name}")
    found = []
    outside = ((points < 0) | (points > [width, height])).any(1)
    if len(points) and outside.all():
        first = points[0].tolist()
        raise ValueError(
            f"{name}: no keypoint lies in the picture of {width} × {height} pixels, the first is at {first}; "
            "keypoints are x, y in pixels of the picture as it is seen upright"
        )
    if outside.any():
        listed = _list(keypoints.indices[outside])
        found.append(
            f"{name}: {outside.sum()} of {len(points)} keypoints lie outside of the picture: {listed}"
        )
    alone, counts = np.unique(points, axis=0, return_counts=True)
    if len(alone) < len(points):
        found.append(f"{name}: {int((counts - 1).sum())} keypoints are at the place of another")
    return found


def _list(indices: np.ndarray, shown: int = 10) -> str:
    words = [str(index) for index in indices[:shown].tolist()]
    return ", ".join(words) + (", …" if len(indices) > shown else "")
