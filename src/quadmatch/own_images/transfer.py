"""Landmarks of one picture found in another that has none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from quadmatch.datasets.boxes import Box, choose_box
from quadmatch.datasets.keypoints import Keypoints, make_keypoints
from quadmatch.datasets.picture import Picture, make_picture
from quadmatch.datasets.pixels import move_points, read_pixels
from quadmatch.delaunay import delaunay
from quadmatch.matcher import Matcher
from quadmatch.own_images.elastic import SIDE, lay_out
from quadmatch.own_images.likeness import compare, find_peak, match_some, see
from quadmatch.result import MatchResult

CELL = 8
"""Pixels of the square that the network sees between two places at which a landmark is sought."""
MOST = 500
"""Landmarks: there are about a thousand places."""
SAME = 0.35
"""Mean score by the read-outs from which both pictures are taken to show the same thing."""
SURE = (0.4, 0.65)
"""Score from which a landmark is taken for found, by read-outs and by what a head has learned.

Of the latter two thirds are right on pictures of Pascal VOC."""


@dataclass(frozen=True, eq=False)
class Transferred:
    """Landmarks in the picture that had none, with the names and places in the file of those they come from."""

    keypoints: Keypoints
    scores: Float[np.ndarray, " K"]
    """How alike both places look, from 0 to 1."""
    sure: float
    """Score from which a landmark is taken for found."""
    edges: Float[np.ndarray, "K K"]
    """The graph of the landmarks."""

    @property
    def points(self) -> Float[np.ndarray, "K 2"]:
        """(x, y) in pixels of the upright picture."""
        return self.keypoints.points

    @property
    def unsure(self) -> Bool[np.ndarray, " K"]:
        """Which landmarks should be looked at."""
        return np.asarray(self.scores < self.sure)

    def to_match(self) -> MatchResult:
        """Each landmark with itself, for drawings."""
        pairs = np.stack([np.arange(len(self.scores))] * 2, 1)
        return MatchResult(pairs, self.scores, np.diag(self.scores), 0.0, 0, True, self.edges, self.edges)


def transfer(
    matcher: Matcher,
    image_a: Any,
    points_a: Any,
    image_b: Any,
    *,
    box_a: Any = None,
    box_b: Any = None,
    constraint: bool = True,
) -> Transferred:
    """Find the landmarks `points_a` of one picture in another.

    Pictures are paths, PIL images or arrays; points are [[x, y], …] in pixels of the upright picture. Boxes
    (x0, y0, x1, y1) say where the object is; without them it is sought in the whole picture first, then in the
    part where it was found. `constraint` is the quadratic constraint on the distances between landmarks.
    """
    a = make_picture(image_a, points_a, box_a, "image_a")
    return transfer_landmarks(matcher, a, make_picture(image_b, [], box_b, "image_b"), constraint=constraint)


def transfer_landmarks(matcher: Matcher, a: Picture, b: Picture, *, constraint: bool = True) -> Transferred:
    """As `transfer`, for pictures that were read: `b` has no keypoints."""
    a, b = (replace(one, image=read_pixels(one.image, one.name)) for one in (a, b))
    landmarks, own, other = a.keypoints.points, a.keypoints.box, b.keypoints.box
    if not len(landmarks):
        return Transferred(a.keypoints, np.zeros(0), SURE[0], np.zeros((0, 0)))
    if len(landmarks) > MOST:
        raise ValueError(f"{a.name} has {len(landmarks)} landmarks; at most {MOST} can be transferred at once")
    found = _search(matcher, _show(a, own), landmarks, _show(b, other), constraint)
    if own is None or other is None:
        # Once it is known where the object is, both pictures are cropped to it.
        part = choose_box(found.expected, *_measure(b.image), other)
        near = _search(matcher, _show(a, own, landmarks), landmarks, replace_box(b, part), constraint)
        found = max(near, found, key=lambda one: one.worth)
    edges = delaunay(torch.from_numpy(landmarks.astype(np.float32))).numpy()
    keypoints = replace(a.keypoints, points=found.points, box=other)
    return Transferred(keypoints, found.scores.clip(0, 1), SURE[found.look], edges)


@dataclass(frozen=True, eq=False)
class _Found:
    points: Float[np.ndarray, "K 2"]
    scores: Float[np.ndarray, " K"]
    expected: Float[np.ndarray, "K 2"]
    look: int
    """Which of the ways to compare places it was found by."""

    @property
    def worth(self) -> tuple[int, float]:
        return -self.look, float(self.scores.mean())


def _measure(pixels: np.ndarray) -> tuple[int, int]:
    return pixels.shape[1], pixels.shape[0]


def replace_box(picture: Picture, box: Box) -> Picture:
    """The picture seen in another box."""
    return replace(picture, keypoints=replace(picture.keypoints, box=box))


def _show(picture: Picture, box: Box | None, points: Float[np.ndarray, "K 2"] | None = None) -> Picture:
    """A picture seen in its box, else around points, else whole."""
    none = np.zeros((0, 2))
    return replace_box(picture, choose_box(none if points is None else points, *_measure(picture.image), box))


def _search(matcher: Matcher, a: Picture, landmarks: Float[np.ndarray, "K 2"], b: Picture, constraint: bool) -> _Found:
    """Where landmarks of the part of one picture are in that of another: by the first look that knows them again."""
    size = matcher.features.size
    assert isinstance(size, int)
    assert a.keypoints.box is not None
    assert b.keypoints.box is not None
    side, unit = size // CELL, SIDE / size
    cells = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2)
    places, own = (cells + 0.5) * CELL, move_points(landmarks, a.keypoints.box, size)
    low, scale = _measure_box(b.keypoints.box, size)
    seen = [see(matcher, _spread(one, places, size)) for one in (a, b)]
    for look, (source, target) in enumerate(zip(*(one.looks for one in seen))):
        alike = compare(source, target, len(landmarks))
        laid = lay_out(alike, unit * own, unit * places, constraint=constraint)
        chosen = laid.chosen
        if look:
            pairs = match_some(matcher, seen[0], np.arange(len(own)), seen[1], laid.promising, constraint)
            chosen[pairs[:, 0]] = pairs[:, 1]
        finer = CELL * (find_peak(alike.reshape(-1, side, side), cells[chosen]) + 0.5)
        scores = alike[np.arange(len(alike)), chosen]
        found = _Found(finer * scale + low, scores, laid.expected / unit * scale + low, look)
        if scores.mean() >= SAME:
            break
    return found


def _measure_box(box: Box, size: int) -> tuple[Float[np.ndarray, " 2"], Float[np.ndarray, " 2"]]:
    """The upper left corner of a part, and the pixels of the picture that one of the square has."""
    low, high = np.split(np.array(box), 2)
    return low, (high - low) / size


def _spread(picture: Picture, places: Float[np.ndarray, "M 2"], size: int) -> Picture:
    """The picture with places of the square that the network sees as keypoints behind its own."""
    own = picture.keypoints
    assert own.box is not None
    low, scale = _measure_box(own.box, size)
    return replace(picture, keypoints=make_keypoints(np.vstack([own.points, places * scale + low]), None, own.box))
