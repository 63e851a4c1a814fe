"""Pairs of warped photographs with known truth, always the same ones, and what matchers make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8

from quadmatch.datasets.annotation import Annotation, read_picture
from quadmatch.datasets.photo_warps import PHOTOGRAPHS, SIDE, View, photo_warps
from quadmatch.result import MatchResult

Picture = UInt8[np.ndarray, "H W 3"]
Points = Float[np.ndarray, "K 2"]


@dataclass(frozen=True, eq=False)
class PicturePair:
    """Two pictures of one thing and the points that both of them show, in different orders."""

    name: str
    picture_a: Picture
    points_a: Points
    picture_b: Picture
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
    views = photo_warps(
        split=split, views=2 * pairs, keypoints=keypoints, size=384, strength=strength, seed=seed
    )
    assert len(views) == 2 * pairs * len(PHOTOGRAPHS[split])
    return [pair_views(a, b, seed) for a, b in zip(views[::2], views[1::2])]


def pair_views(a: Annotation, b: Annotation, seed: int) -> PhotoPair:
    """The points that two annotations share, those of the second in an order of their own."""
    rng = np.random.default_rng([seed, len(a.name), *a.name.encode()])
    shared = [name for name in a.names if name in b.names]
    order = rng.permutation(len(shared))
    left = a.points[[a.names.index(name) for name in shared]]
    right = b.points[[b.names.index(shared[place]) for place in order]]
    assert isinstance(a.image, View)
    assert isinstance(b.image, View)
    views = a.image, b.image
    return PhotoPair(a.name, read_picture(a), left, read_picture(b), right, np.argsort(order), views)


def measure(pairs: Sequence[PicturePair], results: Sequence[MatchResult]) -> float:
    """Percent of the points that are matched right, over all pairs."""
    right = sum(
        pair.count_right(np.asarray(result.pairs)) for pair, result in zip(pairs, results, strict=True)
    )
    return 100 * right / max(sum(len(pair.truth) for pair in pairs), 1)
