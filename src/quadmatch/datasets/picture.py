"""Picture: one picture as a user gives it, with its keypoints."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from quadmatch.datasets.boxes import check_box
from quadmatch.datasets.keypoints import Keypoints, make_keypoints
from quadmatch.datasets.points import check_points


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture as a user gives it, with its keypoints."""

    image: Any
    """A path, a PIL image or an array; None once its features are computed and it is not to be drawn."""
    keypoints: Keypoints
    name: str = "image"
    """What errors call it."""
    file: str = ""
    """The picture's file, as the user named it."""
    points_file: str | None = None
    """The file of keypoints, as the user named it; None where they were detected or clicked."""
    size: tuple[int, int] | None = None
    """Width and height of the upright picture, once it was read."""
    warnings: tuple[str, ...] = ()
    """What is doubtful about it, in words."""


def make_picture(image: Any, points: Any, box: Any = None, name: str = "image") -> Picture:
    """A picture with points [[x, y], …] and, if wanted, a box (x0, y0, x1, y1), both checked."""
    own = None if box is None else check_box(box, f"box of {name}")
    return Picture(image, make_keypoints(check_points(points, f"points of {name}"), None, own), name)


def pair_pictures(
    image_a: Any, points_a: Any, image_b: Any, points_b: Any, box_a: Any = None, box_b: Any = None
) -> tuple[list[Picture], list[int], list[int]]:
    """The different pictures in what was given, singly or in lists, and the pairs as places among them."""
    several = isinstance(image_a, (list, tuple))
    if several != isinstance(image_b, (list, tuple)):
        raise TypeError("image_a and image_b must both be one picture, or both lists of pictures")
    unique: dict[object, int] = {}
    pictures: list[Picture] = []
    sides: list[list[int]] = []
    for side, images, points, boxes in (("a", image_a, points_a, box_a), ("b", image_b, points_b, box_b)):
        if not several:
            images, points, boxes = [images], [points], [boxes]
        boxes = [None] * len(images) if boxes is None else boxes
        if not len(images) == len(points) == len(boxes):
            found = f"{len(images)} pictures, {len(points)} lists of points and {len(boxes)} boxes"
            raise ValueError(f"side {side} has {found}; it needs as many of each")
        sides.append([])
        for number, one in enumerate(zip(images, points, boxes)):
            picture = make_picture(*one, name=f"image_{side}[{number}]" if several else f"image_{side}")
            place = unique.setdefault(_identify(picture), len(pictures))
            if place == len(pictures):
                pictures.append(picture)
            sides[-1].append(place)
    if len(sides[0]) != len(sides[1]):
        raise ValueError(f"image_a has {len(sides[0])} pictures and image_b {len(sides[1])}; pairs need as many")
    return pictures, sides[0], sides[1]


def _identify(picture: Picture) -> object:
    """Equal for pictures that surely are the same: the same path or the same picture in memory."""
    file = isinstance(picture.image, (str, os.PathLike))
    image: object = os.fspath(picture.image) if file else id(picture.image)
    points = picture.keypoints.points
    return image, points.shape, points.tobytes(), picture.keypoints.box
