"""One object in one picture, its named keypoints, and the square crop in which methods see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from quadmatch.datasets.boxes import Box, check_box, clip_box
from quadmatch.datasets.pixels import crop, move_points, read_pixels, read_size


@dataclass(frozen=True, eq=False)
class Annotation:
    """One object in one picture and its named keypoints."""

    name: str
    """Unique in its data set, e.g. `aeroplane/2008_000008_1`."""
    category: str
    image: Path | Callable[[], np.ndarray]
    """A file, or a function that renders the picture as [H, W, 3] bytes."""
    box: Box | None
    """The whole picture when None."""
    names: tuple[str, ...]
    """The keypoints' names, no two alike."""
    points: Float[np.ndarray, "K 2"]
    """(x, y) of each keypoint in pixels of the upright picture, float64."""
    mirrored: bool = False
    """The crop is seen in a mirror, with its keypoints; the picture, the box and `points` are as they are."""

    def __post_init__(self) -> None:
        if len(self.names) != len(self.points):
            raise ValueError(f"{self.name}: {len(self.names)} keypoint names but {len(self.points)} points")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"{self.name}: keypoint names must differ, got {self.names}")
        if not np.isfinite(self.points).all():
            raise ValueError(f"{self.name}: a keypoint's position is not finite")
        if self.box is not None:
            check_box(self.box, f"{self.name}: box")


def read_picture(annotation: Annotation) -> UInt8[np.ndarray, "H W 3"]:
    """The whole picture, upright and in RGB."""
    if callable(annotation.image):
        return annotation.image()
    return read_pixels(annotation.image, annotation.name)


def find_box(annotation: Annotation) -> Box:
    """The annotation's box, or the whole picture's."""
    if annotation.box is not None:
        return annotation.box
    if isinstance(annotation.image, Path):
        width, height = read_size(annotation.image, annotation.name)
    else:
        height, width = annotation.image().shape[:2]
    return (0.0, 0.0, float(width), float(height))


def frame_points(annotation: Annotation, size: int = 256) -> Float[np.ndarray, "K 2"]:
    """The keypoints in the frame of the crop of `size` × `size` pixels."""
    points = move_points(annotation.points, find_box(annotation), size)
    return points * (-1, 1) + (size, 0) if annotation.mirrored else points


def load_crop(annotation: Annotation, size: int = 256) -> tuple[UInt8[np.ndarray, "S S 3"], Float[np.ndarray, "K 2"]]:
    """The annotation's box as `size` × `size` pixels, and the keypoints in that frame as float32."""
    pixels = read_picture(annotation)
    height, width = pixels.shape[:2]
    box = annotation.box or (0.0, 0.0, float(width), float(height))
    if clip_box(box, width, height) != box:
        raise ValueError(f"{annotation.name}: box {box} exceeds its picture of {(width, height)} pixels")
    square = crop(pixels, box, size)
    square = np.ascontiguousarray(square[:, ::-1]) if annotation.mirrored else square
    return square, frame_points(replace(annotation, box=box), size).astype(np.float32)
