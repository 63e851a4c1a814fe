"""Keypoints of one picture from a file: JSON, CSV, TPS, labelme's, CVAT's or COCO's format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from quadmatch.datasets.boxes import parse_box
from quadmatch.datasets.coco import KEYS, choose_object, is_coco, parse_coco_keypoints
from quadmatch.datasets.cvat import read_cvat
from quadmatch.datasets.keypoint_tables import SUFFIXES, read_table
from quadmatch.datasets.keypoints import Keypoints, Listed, choose_one, find_listed, make_keypoints, name_points
from quadmatch.datasets.labelme import is_labelme, parse_labelme
from quadmatch.datasets.pixels import read_size
from quadmatch.datasets.points import check_count, check_points
from quadmatch.datasets.texts import read_json
from quadmatch.datasets.tps import read_tps

FORMS = "[[x, y], …], an object with points, a CSV file of x,y, a TPS file, or labelme's, CVAT's or COCO's format"
READERS = {".tps": read_tps, ".xml": read_cvat}
"""Readers of files that are no JSON, by the end of their names."""


def read_keypoints(
    path: str | os.PathLike[str], image: str | os.PathLike[str] | None = None, size: tuple[int, int] | None = None
) -> Keypoints:
    """The keypoints that a file has for a picture; faults are named with the file and the entry.

    From a file of many objects (COCO, TPS, CVAT) comes the one of the picture that has the same file name as
    `image`. If there are several, `path` must end in its number, as in `people.json#17`. Keypoints that are
    not there are left out, and the others keep their places: `indices` counts all. `size` is the picture's
    width and height, where it is known; TPS files need it.
    """
    file, wanted = split_annotation(path)
    place = None if image is None else Path(image)
    if file.is_dir():
        raise ValueError(f"{file} is a folder; keypoints are in a file: {FORMS}")
    table = file.suffix.lower() in SUFFIXES
    stored = None if table else load_file(file)
    if stored is not None and is_coco(stored):
        return _read_object(file, stored, place, wanted)
    if file.suffix.lower() in READERS or is_labelme(stored):
        number, one = choose_one(list_objects(file, place), file, place, wanted)
        return put_upright(one, f"{file}, {number}", place, size)
    if wanted is not None:
        raise ValueError(f"{file} is not a file of several objects, so that #{wanted} names nothing in it")
    return read_table(file) if table else parse_keypoints(stored, str(file))


def split_annotation(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """`people.json#17` as the file and the annotation's id; a file that has such a name is meant itself."""
    whole = Path(os.path.expanduser(path))
    start, mark, wanted = os.fspath(whole).rpartition("#")
    if mark and wanted and not whole.exists() and Path(start).is_file():
        return Path(start), wanted
    return whole, None


def load_file(file: Path) -> Any:
    """What a file holds: objects of a TPS or XML file, else JSON. Many pictures may share one, which can be large."""
    status = file.stat() if file.is_file() else None  # Of anything else its reader says what is wrong with it.
    return _load(file, status and (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=4)
def _load(file: Path, state: tuple[int, int] | None) -> Any:
    suffix = file.suffix.lower()
    if suffix in READERS:
        return READERS[suffix](file)
    try:
        return read_json(file)
    except ValueError as error:
        if suffix == ".json":
            raise
        raise ValueError(f"{error}; by its name {file.name} should be JSON: keypoints are {FORMS}") from None


def list_objects(file: Path, image: Path | None) -> dict[str, Listed]:
    """The objects by number that a TPS, XML or labelme file has for a picture; none where it names others only."""
    stored = load_file(file)
    return find_listed(parse_labelme(stored, str(file)) if is_labelme(stored) else stored, image)


def put_upright(one: Listed, where: str, image: Path | None, size: tuple[int, int] | None = None) -> Keypoints:
    """The keypoints of an object from the upper edge of its picture."""
    if one.from_bottom and size is None and image is not None:
        size = read_size(image)
    return one.place(size and size[1], where)


def _read_object(file: Path, stored: dict[str, Any], image: Path | None, wanted: str | None) -> Keypoints:
    number, one, category = choose_object(file, stored, image, wanted)
    where = f"{file}, annotation {number}"
    names, points, labelled = parse_coco_keypoints(one, category, where)
    box = parse_box(one["bbox"], f"{where}: bbox", extent=True) if one.get("bbox") else None
    return Keypoints(points[labelled], np.flatnonzero(labelled), len(names), names, box)


def parse_keypoints(stored: Any, where: str) -> Keypoints:
    """`[[x, y], …]`, or an object with `points` (or `keypoints`) and, if wanted, `names` and `box`."""
    if isinstance(stored, list):
        return _parse_points(stored, where)
    if not isinstance(stored, dict):
        raise ValueError(f"{where} holds {type(stored).__name__}; keypoints are {FORMS}")
    key = next((key for key in ("points", "keypoints") if key in stored), None)
    if key is None:
        if any(word in stored for word in KEYS):
            raise ValueError(f"{where} looks like COCO's format, which needs the lists {', '.join(KEYS)}")
        if "objects" in stored:
            raise ValueError(f"{where} lists objects; a match needs a file with the keypoints of one")
        raise ValueError(f"{where} has no points; keypoints are {FORMS}")
    box = None if stored.get("box") is None else parse_box(stored["box"], f"{where}: box")
    found, given = _parse_points(stored[key], where), stored.get("names")
    if given is None:
        return replace(found, box=box)
    if not isinstance(given, list) or len(given) != found.length:
        got = f"{len(given)} names" if isinstance(given, list) else type(given).__name__
        raise ValueError(f"{where}: names must be a list with one for each of {found.length} points; got {got}")
    return make_keypoints(found.points, tuple(str(name) for name in given), box)


def _parse_points(stored: Any, where: str) -> Keypoints:
    """`{name: [x, y]}`, `[{"name", "x", "y"}]` or `[[x, y]]`."""
    if not isinstance(stored, (dict, list)):
        raise ValueError(f"{where}: keypoints must be an object or a list")
    check_count(len(stored), where)
    if isinstance(stored, dict):
        return name_points(list(stored), list(stored.values()), where)
    if not all(isinstance(one, dict) for one in stored):
        return make_keypoints(check_points(stored, where))
    names = [str(one.get("name", row)) for row, one in enumerate(stored)]
    places: Sequence[Any] = [[one.get("x"), one.get("y")] for one in stored]
    return name_points(names, list(places), where)
