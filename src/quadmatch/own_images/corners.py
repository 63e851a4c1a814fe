"""Keypoints where a picture has corners, found without any trained weights.

With OpenCV, in a hundredth of a second and spread over a picture of any size. `datasets.photo_warps` finds
corners of its own, with scipy: a data set must not need OpenCV, and other corners would be another data set.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8

from quadmatch.datasets.boxes import choose_box
from quadmatch.datasets.pixels import read_pixels
from quadmatch.datasets.points import MOST

SIDE = 512
"""Longer side, in pixels, of the part in which corners are sought: larger ones are made smaller first."""
BLUR, BLOCK = 1.0, 7
"""Deviation of the smoothing and side of the window of Shi and Tomasi's corners, in such pixels."""
SPREAD = 0.25
"""Distance between keypoints, as a share of their distance on a grid that fills the picture."""
CELLS, CROWD = 4, 2.0
"""Rows and columns of a grid, and the keypoints in a cell beside their mean: a strong corner has no crowd."""
NEAREST = 4.0
"""Distance that keypoints have at least, in such pixels, even where it leaves too few of them."""
BORDER = 4
FAINTEST, WEAKEST = 3e-6, 1e-4
"""Least strength of a corner: in itself (a flat picture has noise), and beside the picture's strongest."""


def detect(image: Any, count: int, box: Any = None) -> Float[np.ndarray, "K 2"]:
    """At most `count` corners (Shi and Tomasi 1994) of a picture, or of a box in it, spread over it.

    `image` is a path, a PIL image or an array; `box` is (x0, y0, x1, y1). The (x, y) are in pixels of the
    upright picture, strongest first. A picture with fewer corners gives fewer, with a warning.
    """
    points = find_corners(read_pixels(image), count, box)
    if len(points) < count:
        warnings.warn(describe_shortage(len(points), count), stacklevel=2)
    return points


def describe_shortage(found: int, count: int, name: str = "the picture") -> str:
    """What to tell a user whose picture has fewer corners than wanted."""
    return f"{name} has only {found} corners that can be told apart, not {count}"


def find_corners(pixels: UInt8[np.ndarray, "H W 3"], count: int, box: Any = None) -> Float[np.ndarray, "K 2"]:
    """As `detect`, for the bytes of a picture and without a warning."""
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST:
        got = (
            "more" if isinstance(count, int) and count > MOST else f"{count!r:.80}"
        )  # It may have any number of digits.
        raise ValueError(f"count must be a number of keypoints from 0 to {MOST:,}; got {got}")
    height, width = pixels.shape[:2]
    x0, y0, x1, y1 = choose_box(np.zeros((0, 2)), width, height, box)
    # Whole pixels, so that what lies around the box does not count.
    left, top, right, bottom = int(x0), int(y0), int(np.ceil(x1)), int(np.ceil(y1))
    points, strengths, scale = _measure(pixels[top:bottom, left:right])
    order = np.argsort(-strengths, kind="stable")
    width, height = scale * [right - left, bottom - top]
    kept = spread(points[order], count, (width, height))
    return np.asarray(kept / scale + np.array([left, top]))


def _measure(
    part: UInt8[np.ndarray, "H W 3"],
) -> tuple[Float[np.ndarray, "K 2"], Float[np.ndarray, " K"], Float[np.ndarray, " 2"]]:
    """Local maxima of the corner strength in a part made smaller, and how much smaller (x, y) it is."""
    cv2 = load_opencv()
    height, width = part.shape[:2]
    ratio = min(1.0, SIDE / max(height, width))
    size = max(1, round(width * ratio)), max(1, round(height * ratio))
    grey = cv2.cvtColor(np.ascontiguousarray(part), cv2.COLOR_RGB2GRAY)
    if size != (width, height):
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    smooth = cv2.GaussianBlur(grey.astype(np.float32) / 255, (0, 0), BLUR)
    strength = cv2.cornerMinEigenVal(smooth, BLOCK, ksize=3)
    least = max(FAINTEST, WEAKEST * float(strength.max()))
    peak = (strength == cv2.dilate(strength, np.ones((5, 5), np.uint8))) & (strength > least)
    inner = np.zeros_like(peak)
    inner[BORDER:-BORDER, BORDER:-BORDER] = True
    rows, columns = np.nonzero(peak & inner)
    # Positions are measured from the picture's corner, so a pixel's centre is half a pixel in.
    points = np.stack([columns + 0.5, rows + 0.5], 1).astype(np.float64)
    scale = np.array([size[0] / width, size[1] / height])
    return points, strength[rows, columns].astype(np.float64), scale


def spread(points: Float[np.ndarray, "K 2"], count: int, size: tuple[float, float]) -> Float[np.ndarray, "L 2"]:
    """The first points, in order, that keep a distance and do not crowd a part of a picture (width, height).

    Both rules are loosened as long as there are too few.
    """
    width, height = size
    cells = np.floor(points / [width, height] * CELLS).clip(0, CELLS - 1).astype(np.int64) @ [1, CELLS]
    distance, share = SPREAD * float(np.sqrt(width * height / max(count, 1))), CROWD
    while True:
        distance = max(NEAREST, distance)
        places = _take(points, cells, count, distance, max(1, round(share * count / CELLS**2)))
        if len(places) == count or (distance == NEAREST and share >= CELLS**2):
            return points[places]
        distance, share = 0.7 * distance, 1.5 * share


def _take(
    points: Float[np.ndarray, "K 2"], cells: Int[np.ndarray, " K"], count: int, distance: float, most: int
) -> list[int]:
    """Places of the first points that lie apart, at most so many in a cell."""
    free, filled = np.ones(len(points), dtype=bool), np.zeros(CELLS**2, dtype=np.int64)
    kept: list[int] = []
    for place, cell in enumerate(cells.tolist()):
        if len(kept) == count:
            break
        if free[place] and filled[cell] < most:
            kept.append(place)
            filled[cell] += 1
            free &= ((points - points[place]) ** 2).sum(1) >= distance**2
    return kept


def load_opencv() -> Any:
    """OpenCV, or a clear word on what is missing."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError("to find or compare corners, OpenCV is needed: pip install opencv-python-headless") from error
    return cv2
