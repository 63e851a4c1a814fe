"""Pairs of warped photographs with known truth, always the same ones, and what matchers make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, UInt8

from quadmatch.datasets.photo_warps import BORDER, PHOTOGRAPHS, SIDE, View, draw_view, find_corners
from quadmatch.datasets.picture import Picture, pair_pictures
from quadmatch.result import MatchResult

Pixels = UInt8[np.ndarray, "H W 3"]
Points = Float[np.ndarray, "K 2"]


@dataclass(frozen=True, eq=False)
class PicturePair:
    """Two pictures of one thing and the points that both of them show, in different orders."""

    name: str
    picture_a: Pixels
    points_a: Points
    picture_b: Pixels
    points_b: Points
    truth: Int[np.ndarray, " K"]
    """The point of the second picture that each point of the first is."""

    def count_right(self, pairs: Int[np.ndarray, "P 2"]) -> int:
        """How many of some pairs are true."""
        return int((self.truth[pairs[:, 0]] == pairs[:, 1]).sum())


@dataclass(frozen=True, eq=False)
class PhotoPair(PicturePair):
    """Two views of one photograph."""

    views: tuple[View, View]

    @property
    def photograph(self) -> str:
        """The name of what both views show."""
        return self.name.partition("/")[0]

    def follow(self, points: Points) -> Points:
        """Where points of the first view are in the second, in pixels."""
        a, b = self.views
        return b.find((a.warp.apply(points * 2 / a.size - 1) + 1) * SIDE / 2)


def list_photo_pairs(
    pairs: int = 4, *, split: str = "test", keypoints: int = 30, strength: float = 1.0, seed: int = 0
) -> list[PhotoPair]:
    """`pairs` of each photograph of a split, a pure function of the arguments."""
    return [
        pair_views(file, find_corners(file, keypoints), (2 * pair, 2 * pair + 1), 384, strength, seed=seed)
        for file in sorted(PHOTOGRAPHS[split])
        for pair in range(pairs)
    ]


def pair_views(
    file: str,
    places: Points,
    numbers: tuple[int, int] = (0, 1),
    size: int = 384,
    strength: float = 1.0,
    *,
    light: float | None = None,
    border: float = BORDER,
    outside: float | None = None,
    seed: int = 0,
) -> PhotoPair:
    """Two warped views of a photograph, and where both show its `places`, in the second in another order.

    `light` is the strength of the change of light, that of the warp unless given; places within `border`
    pixels of the edge of a view are left out; `outside` is the brightness beyond the photograph's edge, which
    is mirrored there unless given.
    """
    views = [draw_view(file, seed, number, size, strength) for number in numbers]
    lit = strength if light is None else light
    a, b = (replace(view, strength=lit, outside=outside) for view in views)
    points = np.stack([a.find(places), b.find(places)])
    seen = np.asarray(((points > border) & (points < size - border)).all((0, 2)))
    name = f"{Path(file).stem}/{numbers[0]:03d}"
    order = np.random.default_rng([seed, len(name), *name.encode()]).permutation(int(seen.sum()))
    left, right = points[:, seen]
    return PhotoPair(name, a(), left, b(), right[order], np.argsort(order), (a, b))


def list_pictures(pairs: Sequence[PicturePair]) -> tuple[list[Picture], list[int], list[int]]:
    """The pictures of some pairs with their points, and the pairs as places among them."""
    return pair_pictures(
        [pair.picture_a for pair in pairs],
        [pair.points_a for pair in pairs],
        [pair.picture_b for pair in pairs],
        [pair.points_b for pair in pairs],
    )


def measure(pairs: Sequence[PicturePair], results: Sequence[MatchResult]) -> float:
    """Percent of the points that are matched right, over all pairs."""
    right = sum(pair.count_right(np.asarray(result.pairs)) for pair, result in zip(pairs, results, strict=True))
    return 100 * right / max(sum(len(pair.truth) for pair in pairs), 1)
