"""Landmarks of one picture found in another that has none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from quadmatch.datasets.boxes import Box, choose_box
from quadmatch.datasets.keypoints import Keypoints, make_keypoints
from quadmatch.datasets.picture import Picture, make_picture
from quadmatch.datasets.pixels import move_points, read_pixels
from quadmatch.delaunay import delaunay
from quadmatch.features.trunk import join_entries
from quadmatch.matcher import Matcher
from quadmatch.matching import EDGE, Features
from quadmatch.own_images.elastic import SIDE, lay_out
from quadmatch.result import MatchResult

CELL = 8
"""Pixels of the square that the network sees between two places at which a landmark is sought."""
MOST = 500
"""Landmarks: there are about a thousand places."""
SURE = 0.7
"""Score from which a landmark is taken for found: between those of right and of wrong ones in training photographs."""
CLIMB = 1
"""Cells that a landmark may move uphill to where features are most alike."""
WEIGHTS = {EDGE: 2.0}
"""Of read-outs in how alike two places are; 1 where not given."""


@dataclass(frozen=True, eq=False)
class Transferred:
    """Landmarks in the picture that had none, with the names and places in the file of those they come from."""

    keypoints: Keypoints
    scores: Float[np.ndarray, " K"]
    """How alike both places look, from 0 to 1."""
    edges: Float[np.ndarray, "K K"]
    """The graph of the landmarks."""

    @property
    def points(self) -> Float[np.ndarray, "K 2"]:
        """(x, y) in pixels of the upright picture."""
        return self.keypoints.points

    @property
    def unsure(self) -> Bool[np.ndarray, " K"]:
        """Which landmarks should be looked at."""
        return np.asarray(self.scores < SURE)

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
        return Transferred(a.keypoints, np.zeros(0), np.zeros((0, 0)))
    if len(landmarks) > MOST:
        raise ValueError(f"{a.name} has {len(landmarks)} landmarks; at most {MOST} can be transferred at once")
    found = _search(matcher, _show(a, own), landmarks, _show(b, other), constraint)
    if own is None or other is None:
        # Once it is known where the object is, both pictures are cropped to it.
        part = choose_box(found.expected, *_measure(b.image), other)
        near = _search(matcher, _show(a, own, landmarks), landmarks, replace_box(b, part), constraint)
        found = near if near.scores.mean() >= found.scores.mean() else found
    edges = delaunay(torch.from_numpy(landmarks.astype(np.float32))).numpy()
    return Transferred(replace(a.keypoints, points=found.points, box=other), found.scores, edges)


@dataclass(frozen=True, eq=False)
class _Found:
    points: Float[np.ndarray, "K 2"]
    scores: Float[np.ndarray, " K"]
    expected: Float[np.ndarray, "K 2"]


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
    """Where landmarks of the part of one picture are in that of another."""
    size = matcher.features.size
    assert isinstance(size, int)
    assert a.keypoints.box is not None
    assert b.keypoints.box is not None
    side = size // CELL
    cells = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2)
    places = (cells + 0.5) * CELL
    low, high = np.split(np.array(b.keypoints.box), 2)
    scale = (high - low) / size
    grid = replace(b, keypoints=make_keypoints(places * scale + low, None, b.keypoints.box))
    alike = compare(read_features(matcher, a), read_features(matcher, grid))
    unit = SIDE / size
    laid = lay_out(alike, unit * move_points(landmarks, a.keypoints.box, size), unit * places, constraint=constraint)
    finer = CELL * (find_peak(alike.reshape(-1, side, side), cells[laid.chosen]) + 0.5)
    return _Found(finer * scale + low, alike[np.arange(len(alike)), laid.chosen], laid.expected / unit * scale + low)


@torch.no_grad()
def read_features(matcher: Matcher, picture: Picture) -> Features:
    """The read-outs at the keypoints of a picture, whose box is what is seen of it."""
    prepared = matcher.prepare([picture])[0]
    features: Features = matcher.features(*join_entries([prepared.entry], prepared.single, matcher.device))
    return features


def compare(source: Features, target: Features) -> Float[np.ndarray, "K M"]:
    """How alike the nodes of two graphs look: the weighted mean of the cosines of their read-outs."""
    weights = [WEIGHTS.get(name.split()[-1], 1.0) for name in source.maps]
    total = torch.zeros(())
    for weight, name in zip(weights, source.maps):
        a, b = (torch.nn.functional.normalize(one.maps[name][0].double(), dim=-1) for one in (source, target))
        total = total + weight / sum(weights) * (a @ b.mT).cpu()
    return np.asarray(total)


def find_peak(maps: Float[np.ndarray, "K S S"], cells: Int[np.ndarray, "K 2"]) -> Float[np.ndarray, "K 2"]:
    """Where near cells (column, row) a map is largest: uphill by at most `CLIMB` cells, then by a parabola."""
    side, number = maps.shape[1], np.arange(len(maps))
    steps = np.array([(x, y) for y in (-1, 0, 1) for x in (-1, 0, 1)])
    for _ in range(CLIMB):
        around = (cells[:, None] + steps).clip(0, side - 1)
        best = maps[number[:, None], around[..., 1], around[..., 0]].argmax(1)
        cells = around[number, best]
    peaks = cells.astype(np.float64)
    for axis in (0, 1):
        step = np.eye(2, dtype=np.int64)[axis]
        three = [(cells + sign * step).clip(0, side - 1) for sign in (-1, 0, 1)]
        before, here, after = (maps[number, one[:, 1], one[:, 0]] for one in three)
        bend = before - 2 * here + after
        inner = (cells[:, axis] > 0) & (cells[:, axis] < side - 1)
        peaked = inner & (here >= before) & (here >= after) & (bend < 0)
        peaks[:, axis] += np.where(peaked, (before - after) / np.where(peaked, 2 * bend, 1), 0)
    return peaks
