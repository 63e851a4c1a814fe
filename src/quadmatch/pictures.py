"""A user's picture and points, in whatever form they come, to the square crop in which methods see them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import NDArray

Box = tuple[float, float, float, float]

MARGIN = 0.15
"""Added on each side of the keypoints' box, as a share of its longer side."""
NARROWEST = 0.5
"""Shorter over longer side of such a box, at least: points on a line still see what is around them."""

PROGRAMS = ("EPS", "WMF", "EMF")
"""Formats that are run, not decoded: what comes from outside is not."""
DEPTHS = (255, 1023, 4095, 16383, 65535)
"""Whitest values of 8 to 16 bits: cameras and microscopes store 10, 12 or 14 of them in 16."""


def read_pixels(image: Any, name: str = "image") -> UInt8[np.ndarray, "H W 3"]:
    """RGB bytes of a path, a PIL image or an array [H, W], [H, W, 1], [H, W, 3] or [H, W, 4].

    Pictures are turned upright as their EXIF orientation says, transparent parts are white. Arrays are bytes,
    integers of up to 16 bits (how many, the largest says), booleans, or floating-point numbers from 0 to 1 (or
    as integers where one exceeds 1).
    """
    from PIL import Image

    if isinstance(image, (str, os.PathLike)):
        return _read_file(image, name)
    if isinstance(image, Image.Image):
        try:
            return _convert(image)
        except (OSError, SyntaxError, ValueError) as error:
            raise ValueError(f"{name}: cannot decode the picture: {error}") from error
    if isinstance(image, np.ndarray):
        return _read_array(image, name)
    raise TypeError(f"{name} must be a path, a PIL image or a numpy array, got {type(image).__name__}")


def _read_file(path: str | os.PathLike[str], name: str) -> UInt8[np.ndarray, "H W 3"]:
    from PIL import Image

    try:
        with Image.open(path) as picture:
            if picture.format in PROGRAMS:
                raise ValueError(f"{picture.format} is drawn by another program; save it as PNG")
            return _convert(picture)
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: there is no file {os.fspath(path)}") from None
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise ValueError(f"{name}: cannot read the picture {os.fspath(path)}: {error}") from error


def _convert(picture: Any) -> UInt8[np.ndarray, "H W 3"]:
    from PIL import Image, ImageOps

    picture = ImageOps.exif_transpose(picture)
    if picture.mode.startswith(("I", "F")):
        return _to_colour(_to_bytes(np.asarray(picture)))
    if "A" in picture.getbands() or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture)
    return np.array(picture.convert("RGB"))


def _read_array(array: NDArray[Any], name: str) -> UInt8[np.ndarray, "H W 3"]:
    channels = 1 if array.ndim == 2 else array.shape[-1] if array.ndim == 3 else 0
    if channels not in (1, 3, 4) or 0 in array.shape:
        raise ValueError(f"{name} must be an array [H, W] or [H, W, 1, 3 or 4], got the shape {array.shape}")
    if array.dtype.kind not in "buif":
        raise TypeError(f"{name} must hold numbers, got {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    if array.min() < 0:
        raise ValueError(f"{name} must not be negative, got {array.min()}")
    return _to_colour(_to_bytes(array))


def _to_bytes(array: NDArray[Any]) -> UInt8[np.ndarray, ...]:
    """Any range of intensities as bytes."""
    if array.dtype == np.uint8:
        return array
    largest = float(array.max())
    if array.dtype.kind == "b" or (array.dtype.kind == "f" and largest <= 1):
        scale = 255.0
    else:
        scale = 255 / next((depth for depth in DEPTHS if largest <= depth), largest)
    return np.rint(array.astype(np.float64).clip(min=0) * scale).astype(np.uint8)


def _to_colour(array: UInt8[np.ndarray, ...]) -> UInt8[np.ndarray, "H W 3"]:
    if array.ndim == 2:
        array = array[..., None]
    if array.shape[-1] == 1:
        return np.repeat(array, 3, axis=-1)
    if array.shape[-1] == 4:
        alpha = array[..., 3:].astype(np.float64) / 255
        return np.rint(array[..., :3] * alpha + 255 * (1 - alpha)).astype(np.uint8)
    return np.ascontiguousarray(array)


def read_points(points: Any, name: str = "points") -> Float[np.ndarray, "K 2"]:
    """(x, y) of each keypoint as float64, checked."""
    try:
        array = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers [[x, y], …]: {error}") from None
    if array.size == 0 and array.ndim <= 2:
        return np.zeros((0, 2))
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name} must have the shape [K, 2], one (x, y) a keypoint; got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array).all(1)][0].tolist()}")
    return array


def find_box(
    points: Float[np.ndarray, "K 2"], width: int, height: int, box: Any = None, name: str = "box"
) -> Box:
    """The part of the given box (x0, y0, x1, y1) in the picture; without one, the keypoints' with a margin.

    The whole picture where that says nothing: no two different points, or none near the picture.
    """
    if box is not None:
        if len(box) != 4 or not np.isfinite(box).all() or not (box[0] < box[2] and box[1] < box[3]):
            raise ValueError(f"{name} needs (x0, y0, x1, y1) with x0 < x1 and y0 < y1, got {tuple(box)}")
        low, high = np.asarray(box[:2], np.float64), np.asarray(box[2:], np.float64)
    elif len(points) and (extent := points.max(0) - points.min(0)).max() > 0:
        longer = extent.max()
        half = np.maximum(extent / 2 + MARGIN * longer, NARROWEST * (0.5 + MARGIN) * longer)
        centre = (points.max(0) + points.min(0)) / 2
        low, high = centre - half, centre + half
    else:
        return 0.0, 0.0, float(width), float(height)
    low, high = low.clip(min=0), high.clip(max=[width, height])
    if (high - low).min() >= 1:
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])
    if box is not None:
        raise ValueError(f"{name} {tuple(box)} has less than a pixel in the picture of {width} × {height}")
    return 0.0, 0.0, float(width), float(height)


def crop(
    pixels: UInt8[np.ndarray, "H W 3"], points: Float[np.ndarray, "K 2"], box: Box, size: int
) -> tuple[UInt8[np.ndarray, "S S 3"], Float[np.ndarray, "K 2"]]:
    """The box resampled (bicubic) to `size` × `size` pixels, and the keypoints in that frame as float32."""
    from PIL import Image

    resized = Image.fromarray(pixels).resize((size, size), Image.Resampling.BICUBIC, box=box)
    scale = np.array([size / (box[2] - box[0]), size / (box[3] - box[1])])
    return np.array(resized), ((points - np.array(box[:2])) * scale).astype(np.float32)
