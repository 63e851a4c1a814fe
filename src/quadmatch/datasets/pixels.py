"""The one reader and cropper of pictures: any form to upright RGB, and to the square that methods see."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import NDArray

from quadmatch.datasets.boxes import Box
from quadmatch.files import check_regular

PROGRAMS = ("EPS", "WMF", "EMF")
"""Formats that are run, not decoded: what comes from outside is not."""
MOST = 80_000_000
"""Pixels of a picture's file: more take seconds and gigabytes, and methods see a few hundred on a side."""
DEPTHS = (255, 1023, 4095, 16383, 65535)
"""Whitest values of 8 to 16 bits: cameras and microscopes store 10, 12 or 14 of them in 16."""
FLAGS = (b"eXIf", b"Raw profile type exif", b"XML:com.adobe.xmp")
"""How a PNG file begins what may say its orientation."""
ORIENTATION = 0x0112
"""The EXIF entry that says how a picture is to be turned; from 5 on, width and height are exchanged."""


def read_pixels(image: Any, name: str = "image") -> UInt8[np.ndarray, "H W 3"]:
    """RGB bytes of a path, a PIL image or an array [H, W], [H, W, 1], [H, W, 3] or [H, W, 4].

    Pictures are turned upright as their EXIF orientation says, transparent parts are white. Arrays are bytes,
    integers of up to 16 bits (how many, the largest says), booleans, or floating-point numbers from 0 to 1 (or
    as integers where one exceeds 1).
    """
    from PIL import Image

    if isinstance(image, (str, os.PathLike)):
        with _open(image, name) as picture:
            return _convert(picture)
    if isinstance(image, Image.Image):
        try:
            return _convert(image)
        except (OSError, SyntaxError, ValueError) as error:
            raise ValueError(f"{name}: cannot decode the picture: {error}") from error
    if isinstance(image, np.ndarray):
        return _read_array(image, name)
    raise TypeError(f"{name} must be a path, a PIL image or a numpy array, got {type(image).__name__}")


def read_size(path: str | os.PathLike[str], name: str = "image") -> tuple[int, int]:
    """Width and height of the upright picture; only one that a flag may lay on its side is decoded."""
    with _open(path, name) as picture:
        if _read_turn(picture) < 5:
            return picture.size[0], picture.size[1]
        height, width = _convert(picture).shape[:2]
        return width, height


def is_plain(path: str | os.PathLike[str], name: str = "image") -> bool:
    """Whether a picture has nothing to turn, to lay on white or to scale: it is read as any program reads it."""
    with _open(path, name) as picture:
        return _read_turn(picture) == 1 and not _is_deep(picture) and not _is_transparent(picture)


@contextmanager
def _open(path: str | os.PathLike[str], name: str) -> Iterator[Any]:
    """A picture's file; what is wrong with it is told with its name."""
    from PIL import Image

    try:
        check_regular(path)
        with Image.open(path) as picture:
            if picture.format in PROGRAMS:
                raise ValueError(f"{picture.format} is drawn by another program; save it as PNG")
            if picture.width * picture.height > MOST:
                size = f"{picture.width} × {picture.height} pixels, more than {MOST // 10**6} million"
                raise ValueError(f"it has {size}; make it smaller, and its keypoints too")
            yield picture
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: there is no file {os.fspath(path)}") from None
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise ValueError(f"{name}: cannot read the picture {os.fspath(path)}: {error}") from error


def _read_turn(picture: Any) -> int:
    """The EXIF orientation of an open file."""
    if picture.format == "PNG":
        # Its flag may come after the pixels, which PIL decodes to look for it: only where the file has one.
        content = Path(picture.filename).read_bytes()
        if not any(mark in content for mark in FLAGS):
            return 1
    turn = picture.getexif().get(ORIENTATION, 1)
    return turn if isinstance(turn, int) else 1


def _is_deep(picture: Any) -> bool:
    """Whether the numbers of a picture are not bytes."""
    return bool(picture.mode.startswith(("I", "F")))


def _is_transparent(picture: Any) -> bool:
    return "A" in picture.getbands() or "transparency" in picture.info


def _convert(picture: Any) -> UInt8[np.ndarray, "H W 3"]:
    from PIL import Image, ImageOps

    picture = ImageOps.exif_transpose(picture)
    if _is_deep(picture):
        pixels = np.asarray(picture)
        if not np.isfinite(pixels).all():
            raise ValueError("it holds NaN or infinity")
        return _to_colour(_to_bytes(pixels))
    if _is_transparent(picture):
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture)
    return np.array(picture.convert("RGB"))


def _read_array(array: NDArray[Any], name: str) -> UInt8[np.ndarray, "H W 3"]:
    channels = 1 if array.ndim == 2 else array.shape[-1] if array.ndim == 3 else 0
    if channels not in (1, 3, 4) or 0 in array.shape:
        raise ValueError(f"{name} must be an array [H, W] or [H, W, 1, 3 or 4], got the shape {array.shape}")
    if np.ma.is_masked(array):
        raise ValueError(f"{name} has masked pixels, which have no value; give them one, as in {name}.filled(0)")
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


def move_points(points: Float[np.ndarray, "K 2"], box: Box, size: int) -> Float[np.ndarray, "K 2"]:
    """Keypoints of a picture in the frame of its crop."""
    scale = np.array([size / (box[2] - box[0]), size / (box[3] - box[1])])
    return np.asarray((points - np.array(box[:2])) * scale)


def crop(pixels: UInt8[np.ndarray, "H W 3"], box: Box, size: int) -> UInt8[np.ndarray, "S S 3"]:
    """The box of a picture resampled (bicubic) to `size` × `size` pixels."""
    from PIL import Image

    return np.array(Image.fromarray(pixels).resize((size, size), Image.Resampling.BICUBIC, box=box))
