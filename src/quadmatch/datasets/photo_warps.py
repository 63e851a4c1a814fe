"""Photographs that scikit-image carries, warped and relit with exact ground truth; nothing is fetched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import NDArray

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.hashing import hash_text, mix, uniform
from quadmatch.datasets.pixels import crop, read_pixels
from quadmatch.datasets.splits import check_split
from quadmatch.datasets.warps import Warp, draw_warp

PHOTOGRAPHS: dict[str, tuple[str, ...]] = {
    "train": (
        "astronaut.png",
        "chelsea.png",
        "coins.png",
        "grass.png",
        "hubble_deep_field.jpg",
        "ihc.png",
        "page.png",
        "retina.jpg",
    ),
    "validation": ("clock_motion.png", "moon.png"),
    "test": ("camera.png", "coffee.png", "motorcycle_left.png", "rocket.jpg"),
}
"""Those that lie in scikit-image's wheel, so that no split has a photograph of another."""
SIDE = 320
"""Pixels of the photographs that are warped, of which the middle part has the keypoints."""
MARGIN = 60
SEPARATION = 18
BORDER = 4.0
"""Pixels at the edge of a view in which no keypoint is kept."""


def photo_warps(
    root: Path | str | None = None,
    split: str = "train",
    *,
    seed: int = 0,
    views: int = 10,
    keypoints: int = 12,
    size: int = 256,
    strength: float = 1.0,
) -> list[Annotation]:
    """`views` warped views of each photograph of a split, rendered when they are looked at.

    A photograph is a category, and its keypoints are corners that are found without any trained weights.
    `strength` 0 leaves the views alike. `root` is not used.
    """
    check_split(split)
    if min(views, keypoints, size) < 1:
        raise ValueError(f"views, keypoints and size must be positive, got {views}, {keypoints}, {size}")
    parts = ("train", "validation") if split == "trainval" else (split,)
    annotations = []
    for file in (file for part in parts for file in PHOTOGRAPHS[part]):
        corners = find_corners(file, keypoints)
        for number in range(views):
            view = draw_view(file, seed, number, size, strength)
            annotations.append(annotate(view, f"{Path(file).stem}/{number:03d}", corners))
    return sorted(annotations, key=lambda one: one.name)


@dataclass(frozen=True, eq=False)
class View:
    """A photograph seen through a warp, in another light."""

    file: str
    warp: Warp
    """From the view to the photograph, both in [-1, 1]²."""
    key: int
    size: int
    strength: float
    outside: float | None = None
    """Brightness beyond the photograph's edge; None: the photograph is mirrored there."""

    def __call__(self) -> UInt8[np.ndarray, "S S 3"]:
        """The picture."""
        from scipy.ndimage import map_coordinates

        photograph = self.load()
        centres = (np.arange(self.size) + 0.5) * 2 / self.size - 1
        grid = np.stack(np.meshgrid(centres, centres), -1).reshape(-1, 2)
        # Positions are measured from the picture's corner, so a pixel's centre is half a pixel in.
        places = (self.warp.apply(grid) + 1) * SIDE / 2 - 0.5
        beyond = {"mode": "mirror"} if self.outside is None else {"mode": "grid-constant", "cval": self.outside}
        channels = [map_coordinates(photograph[..., c], places.T[::-1], order=1, **beyond) for c in range(3)]
        seen = np.stack(channels, -1).reshape(self.size, self.size, 3)
        return np.rint(255 * self._relight(seen)).astype(np.uint8)

    def load(self) -> Float[np.ndarray, "S S 3"]:
        """What is seen through the warp."""
        return load_photograph(self.file)

    def find(self, corners: Float[np.ndarray, "K 2"]) -> Float[np.ndarray, "K 2"]:
        """Where points of the photograph are in the view, both in pixels."""
        return (self.warp.invert(corners * 2 / SIDE - 1) + 1) * self.size / 2

    def _relight(self, picture: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gamma, contrast, brightness, colour and noise."""
        drawn = self.strength * (2 * uniform(mix(self.key, 1, np.arange(6, dtype=np.uint64))) - 1)
        relit = np.clip(picture, 0, 1) ** np.exp(0.3 * drawn[0])
        relit = 0.5 + (relit - 0.5) * np.exp(0.25 * drawn[1]) + 0.08 * drawn[2]
        relit = relit * np.exp(0.1 * drawn[3:6])
        noise = uniform(mix(self.key, 2, np.arange(relit.size, dtype=np.uint64))).reshape(relit.shape) - 0.5
        return np.asarray(np.clip(relit + 0.05 * self.strength * noise, 0, 1))


def draw_view(file: str, seed: int, number: int, size: int = 256, strength: float = 1.0) -> View:
    """View `number` of a photograph, a pure function of the arguments."""
    key = hash_text("photo warps", seed, file, number)
    warp = draw_warp(uniform(mix(key, 0, np.arange(40, dtype=np.uint64))), strength)
    return View(file, warp, key, size, strength)


def annotate(view: View, name: str, corners: Float[np.ndarray, "K 2"]) -> Annotation:
    """A view with the corners that it shows, named by their numbers; its category is the name up to the last `/`."""
    points = view.find(corners)
    seen = ((points > BORDER) & (points < view.size - BORDER)).all(1)
    names = tuple(str(number) for number in np.flatnonzero(seen))
    box = (0.0, 0.0, float(view.size), float(view.size))
    return Annotation(name, name.rpartition("/")[0], view, box, names, points[seen])


@lru_cache(maxsize=32)
def load_photograph(file: str) -> Float[np.ndarray, "S S 3"]:
    """The middle square of a photograph, in [0, 1]."""
    path = find_photographs() / file
    if not path.is_file():
        raise FileNotFoundError(f"this version of scikit-image does not carry {file}")
    colour = read_pixels(path, file)
    height, width = colour.shape[:2]
    side = min(height, width)
    left, top = float((width - side) // 2), float((height - side) // 2)
    pixels = crop(colour, (left, top, left + side, top + side), SIDE).astype(np.float64) / 255
    pixels.setflags(write=False)
    return pixels


def find_photographs() -> Path:
    """The folder of pictures in the installed scikit-image, which is not imported for it."""
    from importlib.util import find_spec

    found = find_spec("skimage")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("photo warps need scikit-image: pip install scikit-image")
    return Path(found.origin).parent / "data"


@lru_cache(maxsize=64)
def find_corners(file: str, count: int) -> Float[np.ndarray, "K 2"]:
    """The `count` strongest corners of a photograph's middle part, strongest first."""
    return locate_corners(load_photograph(file), count)


def locate_corners(
    photograph: Float[np.ndarray, "S S 3"], count: int, *, margin: int = MARGIN, separation: int = SEPARATION
) -> Float[np.ndarray, "K 2"]:
    """The `count` strongest corners of what is warped (Shi and Tomasi), strongest first.

    None is nearer than `margin` pixels to the edge, or than `separation` pixels to a stronger one in x and y.
    """
    from scipy.ndimage import gaussian_filter, maximum_filter, sobel

    grey = photograph.mean(-1)
    x, y = sobel(grey, 1), sobel(grey, 0)
    xx, xy, yy = (gaussian_filter(product, 2.0) for product in (x * x, x * y, y * y))
    strength = (xx + yy) / 2 - np.sqrt(((xx - yy) / 2) ** 2 + xy**2)
    inner = np.zeros_like(strength, dtype=bool)
    inner[margin:-margin, margin:-margin] = True
    peaks = inner & (strength == maximum_filter(strength, 2 * separation + 1)) & (strength > 0)
    rows, columns = np.nonzero(peaks)
    order = np.argsort(-strength[rows, columns], kind="stable")[:count]
    return np.stack([columns[order] + 0.5, rows[order] + 0.5], 1).astype(np.float64)
