"""The classical peer: OpenCV's SIFT descriptors at given keypoints, assigned one to one."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8

from quadmatch.own_images.corners import load_opencv
from quadmatch.result import MatchResult

SIZE = 8.0
"""Diameter of a keypoint in pixels: the best of 8, 16, 24 and 32 on warps of the training photographs."""


def describe(
    picture: UInt8[np.ndarray, "H W 3"], points: Float[np.ndarray, "K 2"], size: float = SIZE
) -> Float[np.ndarray, "K 128"]:
    """A descriptor a point, turned to the dominant direction of no neighbourhood: pictures are upright."""
    cv2 = load_opencv()
    grey = np.ascontiguousarray(picture.mean(-1).round().astype(np.uint8))
    # OpenCV counts from the centre of the first pixel, annotations from its corner.
    places = [cv2.KeyPoint(float(x) - 0.5, float(y) - 0.5, size, 0.0) for x, y in points]
    kept, described = cv2.SIFT_create().compute(grey, places)
    found = np.zeros((len(points), 128))
    order = {(place.pt[0], place.pt[1]): row for row, place in enumerate(places)}
    for place, row in zip(kept, described if described is not None else ()):
        found[order[place.pt[0], place.pt[1]]] = row
    root = np.sqrt(found / np.maximum(found.sum(1, keepdims=True), 1e-12))
    return np.asarray(root)


def match_sift(
    picture_a: UInt8[np.ndarray, "H W 3"],
    points_a: Float[np.ndarray, "N 2"],
    picture_b: UInt8[np.ndarray, "H W 3"],
    points_b: Float[np.ndarray, "M 2"],
    size: float = SIZE,
) -> MatchResult:
    """The one-to-one assignment with the largest sum of similarities."""
    from scipy.optimize import linear_sum_assignment

    similar = describe(picture_a, points_a, size) @ describe(picture_b, points_b, size).T
    rows, columns = linear_sum_assignment(-similar)
    hard = np.zeros_like(similar)
    hard[rows, columns] = 1
    chosen = np.stack([rows, columns], 1)
    return MatchResult(chosen, similar[rows, columns], hard, -float(similar[rows, columns].sum()), 1, True)
