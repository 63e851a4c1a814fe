"""A picture turned by quarter turns, or seen in a mirror, with its keypoints and its box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from quadmatch.datasets.boxes import Box
from quadmatch.datasets.picture import Picture
from quadmatch.datasets.pixels import read_pixels
from quadmatch.datasets.spans import add_whole

if TYPE_CHECKING:  # Who only asks for the orientations does not wait for torch.
    from quadmatch.result import MatchResult

AS_GIVEN, AUTO, MIRROR = "0", "auto", "mirror"
TURNS = (AS_GIVEN, "90", "180", "270")
ORIENTATIONS = (*TURNS, MIRROR, *(f"{MIRROR}-{turn}" for turn in TURNS[1:]))
"""Degrees clockwise; `mirror`: left and right are exchanged first."""


def list_orientations(orientation: str | int) -> Sequence[str]:
    """The orientations that are tried: the one that is named, or all for `auto`."""
    if str(orientation) == AUTO:
        return ORIENTATIONS
    if str(orientation) not in ORIENTATIONS:
        raise ValueError(f"orientation must be {AUTO} or one of {', '.join(ORIENTATIONS)}; got {orientation!r}")
    return (str(orientation),)


@dataclass(frozen=True)
class Try:
    """One way to look at a pair of pictures, given by the places of the two views."""

    pair: int
    source: int
    target: int
    orientation: str


def list_tries(
    pictures: Sequence[Picture], source: Sequence[int], target: Sequence[int], orientations: Sequence[str | int]
) -> tuple[list[Picture], list[Try]]:
    """All views of the pictures that are looked at, each once, and all ways in which the pairs are tried.

    Where few keypoints face many (`compare_spans`), both pictures are also seen whole; the second picture of a
    pair is seen in each orientation that is asked for.
    """
    shown, left, right, doubtful = add_whole(pictures, source, target)
    views, tries = list(shown), []
    places: dict[tuple[int, str], int] = {}
    for pair, i, j in zip([*range(len(source)), *doubtful], left, right):
        for name in list_orientations(orientations[pair]):
            place = j if name == AS_GIVEN else places.setdefault((j, name), len(views))
            if place == len(views):
                views.append(turn_picture(shown[j], name))
            tries.append(Try(pair, i, place, name))
    return views, tries


def take_best(tries: Sequence[Try], results: Sequence[MatchResult]) -> list[MatchResult]:
    """One result a pair: of all ways in which it was tried the one with the lowest objective."""
    best: dict[int, MatchResult] = {}
    for way, result in zip(tries, results):
        if way.pair not in best or float(result.objective) < float(best[way.pair].objective):
            best[way.pair] = replace(result, orientation=way.orientation)
    return [best[pair] for pair in sorted(best)]


def turn_picture(picture: Picture, orientation: str) -> Picture:
    """The picture as it looks turned so, with the same keypoints in the same order."""
    if orientation == AS_GIVEN:
        return picture
    pixels, own = read_pixels(picture.image, picture.name), picture.keypoints
    width = pixels.shape[1]
    points, box = own.points, own.box
    if orientation.startswith(MIRROR):
        pixels = pixels[:, ::-1]
        points, box = ((width, 0) + points * (-1, 1)), box and (width - box[2], box[1], width - box[0], box[3])
    for _ in range(TURNS.index(orientation.removeprefix(MIRROR).removeprefix("-") or AS_GIVEN)):
        points, box = _turn_points(points, pixels.shape[0]), box and _turn_box(box, pixels.shape[0])
        pixels = np.rot90(pixels, -1)
    size = pixels.shape[1], pixels.shape[0]
    return replace(
        picture, image=np.ascontiguousarray(pixels), keypoints=replace(own, points=points, box=box), size=size
    )


def _turn_points(points: Float[np.ndarray, "K 2"], height: int) -> Float[np.ndarray, "K 2"]:
    """Where points are after a quarter turn clockwise of a picture of that height."""
    return np.stack([height - points[:, 1], points[:, 0]], 1)


def _turn_box(box: Box, height: int) -> Box:
    return height - box[3], box[0], height - box[1], box[2]
