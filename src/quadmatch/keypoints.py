"""Keypoints of one picture from a file: JSON, CSV, or COCO's JSON format."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from quadmatch.datasets.annotation import Box
from quadmatch.datasets.coco import (
    KEYS,
    index_rows,
    is_coco,
    look_up,
    parse_bbox,
    parse_coco_keypoints,
    read_json,
)
from quadmatch.datasets.point_lists import check_points, parse_box, parse_points, read_csv

FORMS = "[[x, y], …], an object with points, a CSV file of x,y, or COCO's keypoint format"


@dataclass(frozen=True, eq=False)
class Keypoints:
    """Keypoints of one picture, in its pixels."""

    points: Float[np.ndarray, "K 2"]
    indices: Int[np.ndarray, " K"]
    """Each one's place in the file; not 0, 1, 2, … where the file lists keypoints that are not there."""
    length: int
    """Places in the file."""
    names: tuple[str, ...] | None = None
    """One for each place in the file."""
    box: Box | None = None
    """(x0, y0, x1, y1): the part of the picture to look at, where the file says so."""


def make_keypoints(
    points: Float[np.ndarray, "K 2"], names: tuple[str, ...] | None = None, box: Box | None = None
) -> Keypoints:
    """Keypoints that are all there."""
    return Keypoints(points, np.arange(len(points)), len(points), names, box)


def read_keypoints(path: str | os.PathLike[str], image: str | os.PathLike[str] | None = None) -> Keypoints:
    """The keypoints that a file has for a picture; faults are named with the file and the entry.

    From COCO's format comes the object of the picture that has the same file name as `image`. If there are
    several, `path` must end in its annotation's id, as in `people.json#17`. Keypoints of visibility 0 are
    left out, and the others keep their places: `indices` counts all keypoints of the annotation.
    """
    file, wanted = split_annotation(path)
    if file.is_dir():
        raise ValueError(f"{file} is a folder; keypoints are in a file: {FORMS}")
    if file.suffix.lower() in (".csv", ".tsv", ".txt"):
        names, points = read_csv(file)
        return make_keypoints(points, None if names == _count(names) else names)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    # Many pictures may share one file of COCO's, which can be large.
    status = file.stat()
    stored = _load(file, status.st_mtime_ns, status.st_size)
    if is_coco(stored):
        return _choose(file, stored, None if image is None else Path(image), wanted)
    if wanted is not None:
        raise ValueError(f"{file} is not in COCO's format, so that #{wanted} names nothing in it")
    return parse_keypoints(stored, str(file))


def split_annotation(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """`people.json#17` as the file and the annotation's id; a file that has such a name is meant itself."""
    whole = Path(path).expanduser()
    start, mark, wanted = os.fspath(whole).rpartition("#")
    if mark and wanted and not whole.exists() and Path(start).is_file():
        return Path(start), wanted
    return whole, None


@lru_cache(maxsize=4)
def _load(file: Path, changed: int, size: int) -> Any:
    return read_json(file)


def parse_keypoints(stored: Any, where: str) -> Keypoints:
    """`[[x, y], …]`, or an object with `points` (or `keypoints`) and, if wanted, `names` and `box`."""
    if isinstance(stored, list):
        return _join(stored, None, None, where)
    if not isinstance(stored, dict):
        raise ValueError(f"{where} holds {type(stored).__name__}; keypoints are {FORMS}")
    key = next((key for key in ("points", "keypoints") if key in stored), None)
    if key is None:
        if any(word in stored for word in KEYS):
            raise ValueError(f"{where} looks like COCO's format, which needs the lists {', '.join(KEYS)}")
        if "objects" in stored:
            raise ValueError(f"{where} lists objects; a match needs a file with the keypoints of one")
        raise ValueError(f"{where} has no points; keypoints are {FORMS}")
    box = None if stored.get("box") is None else check_box(parse_box(stored["box"], where), where)
    return _join(stored[key], stored.get("names"), box, where)


def _join(stored: Any, given: Any, box: Box | None, where: str) -> Keypoints:
    names, points = parse_points(stored, where)
    if given is None:
        return make_keypoints(points, None if names == _count(names) else names, box)
    if not isinstance(given, list) or len(given) != len(points):
        found = f"{len(given)} names" if isinstance(given, list) else type(given).__name__
        raise ValueError(
            f"{where}: names must be a list with one for each of {len(points)} points; got {found}"
        )
    return make_keypoints(points, tuple(str(name) for name in given), box)


def _count(names: tuple[str, ...]) -> tuple[str, ...]:
    """What keypoints without names are called."""
    return tuple(str(number) for number in range(len(names)))


def check_box(box: Box, where: str) -> Box:
    """The box, if it is one."""
    if not np.isfinite(box).all() or not (box[0] < box[2] and box[1] < box[3]):
        raise ValueError(f"{where}: box must be (x0, y0, x1, y1) with x0 < x1 and y0 < y1; got {list(box)}")
    return box


def _choose(file: Path, stored: dict[str, Any], image: Path | None, wanted: str | None) -> Keypoints:
    """The object of a picture among all of a file in COCO's format."""
    categories = index_rows(file, stored, "categories")
    found = {
        number: one
        for number, one in index_rows(file, stored, "annotations").items()
        if one.get("keypoints") and not one.get("iscrowd")
    }
    if wanted is not None:
        found = {number: one for number, one in found.items() if str(number) == wanted}
        if not found:
            raise ValueError(f"{file} has no annotation {wanted} with keypoints")
    elif image is not None:
        pictures = _find_pictures(file, stored, image)
        found = {number: one for number, one in found.items() if one.get("image_id") in pictures}
    whose = "" if image is None else f" for {image.name}"
    if len(found) != 1:
        if not found:
            raise ValueError(f"{file} has no object with keypoints{whose}")
        listed = ", ".join(str(number) for number in list(found)[:10])
        example = f"{file.name}#{next(iter(found))}"
        raise ValueError(f"{file} has {len(found)} objects{whose}: {listed}; say which, as in {example}")
    number, one = next(iter(found.items()))
    where = f"{file}, annotation {number}"
    category = look_up(categories, one, "category_id", where)
    names, points, labelled = parse_coco_keypoints(one, category, where)
    indices = np.flatnonzero(labelled)
    check_points([names[place] for place in indices], points[indices].tolist(), [where] * len(indices))
    box = check_box(parse_bbox(one["bbox"], where), where) if one.get("bbox") else None
    return Keypoints(points[indices], indices, len(names), names, box)


def _find_pictures(file: Path, stored: dict[str, Any], image: Path) -> set[Any]:
    """Ids of the pictures with this file's name; where several folders have one, of the same folder."""
    pictures = index_rows(file, stored, "images")
    parts = {number: Path(str(one.get("file_name", ""))).parts for number, one in pictures.items()}
    own = image.absolute().parts
    alike = {number for number, other in parts.items() if other and other[-1] == own[-1]}
    if not alike:
        raise ValueError(f"{file} has no picture {image.name}; its file_name must be the same")
    whole = {number for number in alike if own[-len(parts[number]) :] == parts[number]}
    longest = max((len(parts[number]) for number in whole), default=0)
    return {number for number in whole if len(parts[number]) == longest} or alike
