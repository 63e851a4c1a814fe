"""A file of keypoints that a visitor loads: read by the command line's own reader."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from quadmatch.datasets.keypoint_files import read_keypoints
from quadmatch.web.fields import check_inside, check_number
from quadmatch.web.uploads import Limits, Refused

LARGEST = 8 * 2**20
"""Bytes: many pictures' keypoints in one file of COCO's."""


def describe_file(content: bytes, name: str, image: str, size: tuple[int, int], limits: Limits) -> dict[str, Any]:
    """The points that a file has for a picture, their names and the part of the picture to look at.

    The reader takes a path, so that the file lies in a folder of its own for as long as it is read.
    """
    if len(content) > LARGEST:
        raise Refused(413, "too-large", f"A file of points may have at most {LARGEST // 2**20} MB.")
    shown = Path(name.replace("\\", "/")).name or "points"
    with tempfile.TemporaryDirectory(prefix="quadmatch-") as folder:
        path = Path(folder) / f"points{Path(shown).suffix.lower()}"
        path.write_bytes(content)
        try:
            found = read_keypoints(path, image or None, size)
        except (ValueError, OSError, OverflowError, RecursionError) as error:
            message = str(error).replace(str(path), shown)
            raise Refused(400, "bad-points", (message if shown in message else f"{shown}: {message}")[:400]) from None
    check_number(found.points, shown, limits)
    check_inside(found.points, shown, *size)
    names = found.name_all()
    # A file may list keypoints that are not there: those that are keep the names that the file gives or counts.
    own = None if found.names is None and len(found.points) == found.length else [names[i] for i in found.indices]
    return {"points": found.points.tolist(), "names": own, "box": found.box and list(found.box)}
