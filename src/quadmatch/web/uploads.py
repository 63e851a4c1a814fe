"""What a stranger may send: limited in bytes, pixels, points, number and time, and what is in it."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import numpy as np
from jaxtyping import UInt8
from starlette.datastructures import FormData, UploadFile

from quadmatch.datasets.pixels import read_pixels
from quadmatch.own_images.recent import MEMORY

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
"""Decoders that strangers' bytes may reach."""


@dataclass(frozen=True)
class Limits:
    """What one request, and all of them together, may take."""

    bytes: int = 24 * 2**20
    """Of one picture's file."""
    pixels: int = 60_000_000
    """Of one picture."""
    points: int = 500
    """Of one picture."""
    seconds: float = 60.0
    """For an upload, and again for its match."""
    pause: float = 10.0
    """Seconds within which the next bytes of an upload must come."""
    uploads: int = 32
    """Requests whose bodies are on their way; the one that is silent for longest makes room for one more."""
    clients: int = 24
    """Requests in hand whose bodies are whole; more are told to come back."""
    batch: int = 8
    """Pairs that are matched together."""
    together: int = 160_000_000
    """Decoded pixels of all requests; further ones wait."""
    features: int = MEMORY
    """Bytes of features of the last pictures, which are found again by content; 0: none are kept."""


class Refused(Exception):
    """A request that is not answered: the status, a word for programs and a sentence for people."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def take_name(form: FormData, name: str) -> str:
    """What the user calls an uploaded file."""
    part = form.get(name)
    return (part.filename if isinstance(part, UploadFile) else None) or name


async def take_file(form: FormData, name: str, limits: Limits) -> bytes:
    """The bytes of one uploaded file."""
    part = form.get(name)
    if not isinstance(part, UploadFile):
        raise Refused(400, "no-file", f"{name}: a file is missing.")
    content = await part.read()
    if not content:
        raise Refused(400, "empty-file", f"{name}: the file is empty.")
    if len(content) > limits.bytes:
        raise too_large(limits)
    return content


def measure_picture(content: bytes, name: str, limits: Limits) -> tuple[int, int]:
    """Width and height as the file says, before anything is decoded; refused if it is no picture or too large."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(BytesIO(content), formats=FORMATS) as picture:
            width, height = picture.size
    except UnidentifiedImageError:
        known = "PNG, JPEG, WebP, GIF, BMP or TIFF"
        raise Refused(415, "not-a-picture", f"{name}: this is not a picture that can be read ({known}).") from None
    except Image.DecompressionBombError:
        width, height = limits.pixels + 1, 1
    except Exception as error:
        raise _broken(name, error) from None
    if width * height > limits.pixels:
        most = limits.pixels / 1e6
        raise Refused(413, "too-many-pixels", f"{name}: a picture may have at most {most:g} million pixels.")
    return width, height


def decode_picture(content: bytes, name: str) -> UInt8[np.ndarray, "H W 3"]:
    """The pixels of a picture that `measure_picture` let pass, upright; the first frame of an animation."""
    from PIL import Image

    try:
        with Image.open(BytesIO(content), formats=FORMATS) as picture:
            return read_pixels(picture, name)
    except Exception as error:  # Decoders raise anything on broken files.
        raise _broken(name, error) from None


def too_large(limits: Limits) -> Refused:
    """The refusal of a file with too many bytes."""
    return Refused(413, "too-large", f"A file may have at most {limits.bytes / 2**20:.3g} MB.")


def _broken(name: str, error: Exception) -> Refused:
    reason = str(error).removeprefix(f"{name}: cannot decode the picture: ") or type(error).__name__
    return Refused(415, "broken-picture", f"{name}: the picture is damaged or cannot be decoded ({reason[:160]}).")
