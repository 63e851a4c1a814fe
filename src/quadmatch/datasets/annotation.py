"""One object in one picture, its named keypoints, and the square crop in which methods see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import NDArray

Box = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Annotation:
    """One object in one picture and its named keypoints."""

    name: str
    """Unique in its data set, e.g. `aeroplane/2008_000008_1`."""
    category: str
    image: Path | Callable[[], np.ndarray]
    """A file, or a function that renders the picture as [H, W, 3] bytes."""
    box: Box | None
    """(x0, y0, x1, y1) in pixels of the picture; the whole picture when None."""
    names: tuple[str, ...]
    """The keypoints' names, no two alike."""
    points: Float[np.ndarray, "K 2"]
    """(x, y) of each keypoint in pixels of the picture, float64."""
    mirrored: bool = False
    """The crop is seen in a mirror, with its keypoints; the picture, the box and `points` are as they are."""

    def __post_init__(self) -> None:
        if len(self.names) != len(self.points):
            raise ValueError(f"{self.name}: {len(self.names)} keypoint names but {len(self.points)} points")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"{self.name}: keypoint names must differ, got {self.names}")
        if not np.isfinite(self.points).all():
            raise ValueError(f"{self.name}: a keypoint's position is not finite")
        if self.box is not None and not (self.box[0] < self.box[2] and self.box[1] < self.box[3]):
            raise ValueError(f"{self.name}: box (x0, y0, x1, y1) needs x0 < x1 and y0 < y1, got {self.box}")


def read_picture(annotation: Annotation) -> UInt8[np.ndarray, "H W 3"]:
    """The whole picture in RGB."""
    if callable(annotation.image):
        return annotation.image()
    from PIL import Image

    try:
        with Image.open(annotation.image) as picture:
            return np.asarray(picture.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"{annotation.name}: cannot read {annotation.image}: {error}") from error


def read_size(image: Path) -> tuple[int, int]:
    """Width and height of a picture, from its header."""
    from PIL import Image

    try:
        with Image.open(image) as picture:
            return picture.size
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"cannot read the picture {image}: {error}") from error


def find_box(annotation: Annotation) -> Box:
    """The annotation's box, or the whole picture's."""
    if annotation.box is not None:
        return annotation.box
    if isinstance(annotation.image, Path):
        width, height = read_size(annotation.image)
    else:
        height, width = annotation.image().shape[:2]
    return (0.0, 0.0, float(width), float(height))


def clip_box(box: Box, width: int, height: int) -> Box:
    """The part of a box that lies in a picture of the given size."""
    return (max(box[0], 0.0), max(box[1], 0.0), min(box[2], float(width)), min(box[3], float(height)))


def frame_points(annotation: Annotation, size: int = 256) -> Float[np.ndarray, "K 2"]:
    """The keypoints in the frame of the crop of `size` × `size` pixels."""
    x0, y0, x1, y1 = find_box(annotation)
    scale = np.array([size / (x1 - x0), size / (y1 - y0)])
    points: NDArray[np.float64] = (annotation.points - np.array([x0, y0])) * scale
    return points * (-1, 1) + (size, 0) if annotation.mirrored else points


def load_crop(
    annotation: Annotation, size: int = 256
) -> tuple[UInt8[np.ndarray, "S S 3"], Float[np.ndarray, "K 2"]]:
    """The box resampled (bicubic) to `size` × `size` pixels, and the keypoints in that frame as float32."""
    from PIL import Image

    picture = Image.fromarray(read_picture(annotation))
    box = find_box(annotation)
    clipped = clip_box(box, *picture.size)
    if clipped != box:
        raise ValueError(f"{annotation.name}: box {box} exceeds its picture of {picture.size} pixels")
    crop = picture.resize((size, size), Image.Resampling.BICUBIC, box=box)
    if annotation.mirrored:
        crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.asarray(crop), frame_points(annotation, size).astype(np.float32)
