"""Warped pictures of a data set's own objects, for training: views, which are matched with each other, and copies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from quadmatch.datasets.annotation import Annotation, frame_points, load_crop
from quadmatch.datasets.hashing import hash_text, mix, uniform
from quadmatch.datasets.photo_warps import SIDE, View, annotate, locate_corners
from quadmatch.datasets.warps import Warp, draw_warp

VIEW = "view/"
"""Categories that begin like this are views of one object."""
VIEWS, CORNERS, FEWEST = 3, 40, 12
"""Views of an object, corners that are looked for in it, and below which it is passed over."""
MARGIN, SEPARATION = 40, 12
"""Pixels of the object between a corner and the edge, and between two corners."""
STRENGTH = (0.5, 2.0)
"""How far views are warped, at least and at most; 2 turns by up to 57 degrees."""
NARROWEST = 0.4
"""Share to which a view is made narrower along some direction, at least: as a wall is that is seen from the side."""
KEPT = 0.5
"""Share of the corners that a view keeps, at least; the others have no partner there."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectView(View):
    """The part of a picture that shows an object, seen through a warp, in another light."""

    shown: Annotation

    def load(self) -> Float[np.ndarray, "S S 3"]:
        """What is seen through the warp."""
        return load_object(self.shown)

    def identify(self) -> bytes:
        """What the view depends on, without drawing it: two that differ are different."""
        image = self.shown.image
        content = image.read_bytes() if isinstance(image, Path) else image().tobytes()
        side = (self.shown.mirrored,) if self.shown.mirrored else ()
        return content + repr((self.shown.box, self.key, self.size, self.strength, *side)).encode()


def load_object(annotation: Annotation) -> Float[np.ndarray, "S S 3"]:
    """The box of an object as `SIDE` × `SIDE` pixels in [0, 1]."""
    return load_crop(annotation, SIDE)[0] / 255.0


def make_views(annotations: Sequence[Annotation], pictures: int, size: int = 256) -> list[Annotation]:
    """Views of at most so many of the objects, chosen by their names; each object is a category of its own.

    Their keypoints are corners of the picture, found without trained weights, in place of the object's own keypoints:
    those are few, and a network already knows them from pairs of different objects.
    """
    if pictures < 1:
        raise ValueError(f"views need at least one picture, got {pictures}")
    chosen = sorted(annotations, key=lambda one: hash_text("views", one.name))[:pictures]
    return [view for one in chosen for view in _list_views(one, size)]


def _list_views(shown: Annotation, size: int) -> Iterator[Annotation]:
    """The views of one object; none if it has hardly any corners."""
    corners = locate_corners(load_object(shown), CORNERS, margin=MARGIN, separation=SEPARATION)
    if len(corners) < FEWEST:
        return
    for number in range(VIEWS):
        key = hash_text("view", shown.name, number)
        numbers = uniform(mix(key, 0, np.arange(44, dtype=np.uint64)))
        strength = STRENGTH[0] + (STRENGTH[1] - STRENGTH[0]) * float(numbers[40])
        warp = narrow(draw_warp(numbers[:40], strength), *numbers[41:43])
        view = ObjectView(shown.name, warp, key, size, strength, shown=shown)
        yield _thin(annotate(view, f"{VIEW}{shown.name}/{number}", corners), key, float(numbers[43]))


def make_copies(annotations: Sequence[Annotation], copies: float, strength: float, size: int = 256) -> list[Annotation]:
    """Objects as warps of this strength show them, in another light: on average so many copies of each.

    A copy is one more object of its category, with those keypoints of its original that it shows. So training sees
    image features of turned and bent objects too. Names and numbers decide which objects have a copy.
    """
    chances = ((one, number, copies - number) for one in annotations for number in range(math.ceil(copies)))
    return [
        _copy(one, i, strength, size) for one, i, chance in chances if hash_text("copied", one.name, i) < chance * 2**64
    ]


def _copy(shown: Annotation, number: int, strength: float, size: int) -> Annotation:
    """One warped copy of an object, a function of its name and the number."""
    key = hash_text("copy", shown.name, number)
    warp = draw_warp(uniform(mix(key, 0, np.arange(40, dtype=np.uint64))), strength)
    view = ObjectView(shown.name, warp, key, size, strength, shown=shown)
    warped = annotate(view, f"{shown.name}, copy {number}", frame_points(shown, SIDE))
    names = tuple(shown.names[int(index)] for index in warped.names)
    return replace(warped, category=shown.category, names=names)


def narrow(warp: Warp, direction: float, amount: float) -> Warp:
    """The warp of a view that is also made narrower along a direction; both numbers lie in (0, 1)."""
    angle, share = np.pi * direction, 1 - (1 - NARROWEST) * amount
    along = np.array([np.cos(angle), np.sin(angle)])
    matrix = np.eye(3)
    # A warp goes from the view to the photograph: what is narrower there is wider here.
    matrix[:2, :2] += (1 / share - 1) * np.outer(along, along)
    return replace(warp, homography=matrix @ warp.homography)


def _thin(view: Annotation, key: int, number: float) -> Annotation:
    """The view with some of its corners, so that others' have no partner in it."""
    share = KEPT + (1 - KEPT) * number
    stays = uniform(mix(key, 3, np.array([hash_text(name) for name in view.names], dtype=np.uint64))) < share
    names = tuple(name for name, kept in zip(view.names, stays) if kept)
    return replace(view, names=names, points=view.points[stays])
