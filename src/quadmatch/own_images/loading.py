"""A picture of a user and its keypoints, from the files that the user names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quadmatch.datasets.boxes import Box, choose_box, parse_box
from quadmatch.datasets.keypoint_files import read_keypoints
from quadmatch.datasets.keypoints import Keypoints, make_keypoints
from quadmatch.datasets.picture import Picture
from quadmatch.datasets.pixels import read_pixels
from quadmatch.own_images.places import Folder, fetch, fetch_points, hide_secrets, locate


def load_picture(
    image: str,
    points: str | None,
    part: str | None = None,
    *,
    count: int | None = None,
    name: str = "image",
    folder: Folder | None = None,
) -> Picture:
    """The picture and its keypoints, from a file or, with a `count`, detected; names are relative to `folder`.

    Files are paths or addresses that fsspec knows. `part` is the box to look at, as x,y,w,h; `name` is what
    errors call the picture.
    """
    box = _read_part(part, name)
    shown = hide_secrets(image)
    if points is None and count is None:
        raise ValueError(f"{name} {shown} has no keypoints: name a file, or let them be detected (--detect 40)")
    place, stored = locate(folder, image), None
    if points is not None:
        with fetch_points(locate(folder, points), f"points of {name}") as file:
            stored = read_keypoints(file, hide_secrets(place))
    with fetch(place, name) as path:
        pixels = read_pixels(path, name)
    warnings: list[str] = []
    if stored is None:
        from quadmatch.own_images.corners import describe_shortage, find_corners

        assert count is not None
        keypoints = make_keypoints(find_corners(pixels, count, box), None, box)
        if len(keypoints.points) < count:
            warnings.append(describe_shortage(len(keypoints.points), count, f"{name} ({shown})"))
    else:
        keypoints = stored if box is None else replace(stored, box=box)
    size = pixels.shape[1], pixels.shape[0]
    warnings += check_places(keypoints, *size, f"{name} ({shown})")
    points_file = None if points is None else hide_secrets(points)
    return Picture(pixels, keypoints, name, shown, points_file, size, tuple(warnings))


def load_bare(image: str, part: str | None = None, *, name: str = "image") -> Picture:
    """A picture without keypoints; `part` is the box to look at, as x,y,w,h."""
    box = _read_part(part, name)
    with fetch(locate(None, image), name) as path:
        pixels = read_pixels(path, name)
    size = pixels.shape[1], pixels.shape[0]
    keypoints = make_keypoints(np.zeros((0, 2)), None, box)
    choose_box(keypoints.points, *size, box, f"box of {name}")
    return Picture(pixels, keypoints, name, image, None, size)


def _read_part(part: str | None, name: str) -> Box | None:
    return parse_box(part, f"box of {name}", extent=True) if part and part.strip() else None


def check_places(keypoints: Keypoints, width: int, height: int, name: str) -> Sequence[str]:
    """What is doubtful about where keypoints are; an error where they belong to another picture."""
    points, box = keypoints.points, keypoints.box
    if box is not None:
        choose_box(points, width, height, box, f"box of {name}")
    found = [] if len(points) else [f"{name}: there is no keypoint, so that nothing is matched"]
    outside = ((points < 0) | (points > [width, height])).any(1)
    if len(points) and outside.all():
        first = points[0].tolist()
        raise ValueError(
            f"{name}: no keypoint lies in the picture of {width} × {height} pixels, the first is at {first}; "
            "keypoints are x, y in pixels of the picture as it is seen upright"
        )
    if outside.any():
        listed = _list(keypoints.indices[outside])
        found.append(f"{name}: {outside.sum()} of {len(points)} keypoints lie outside of the picture: {listed}")
    alone, counts = np.unique(points, axis=0, return_counts=True)
    if len(alone) < len(points):
        found.append(f"{name}: {int((counts - 1).sum())} keypoints are at the place of another")
    return found


def _list(indices: np.ndarray, shown: int = 10) -> str:
    words = [str(index) for index in indices[:shown].tolist()]
    return ", ".join(words) + (", …" if len(indices) > shown else "")
