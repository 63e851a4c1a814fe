"""Keypoints of one picture from a file: JSON, CSV, or COCO's JSON format."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from quadmatch.datasets.boxes import Box, parse_box
from quadmatch.datasets.coco import KEYS, choose_object, is_coco, parse_coco_keypoints
from quadmatch.datasets.points import check_points
from quadmatch.datasets.texts import read_json, read_text

FORMS = "[[x, y], …], an object with points, a CSV file of x,y, or COCO's keypoint format"
NAMES = ("name", "label", "id")
"""Headings of a CSV column that names the keypoints."""


@dataclass(frozen=True, eq=False)
class Keypoints:
    """Keypoints of one picture, in pixels of the upright picture."""

    points: Float[np.ndarray, "K 2"]
    indices: Int[np.ndarray, " K"]
    """Each one's place in the file; not 0, 1, 2, … where the file lists keypoints that are not there."""
    length: int
    """Places in the file."""
    names: tuple[str, ...] | None = None
    """One for each place in the file."""
    box: Box | None = None
    """The part of the picture to look at, where the file says so."""


def make_keypoints(
    points: Float[np.ndarray, "K 2"], names: tuple[str, ...] | None = None, box: Box | None = None
) -> Keypoints:
    """Keypoints that are all there."""
    return Keypoints(points, np.arange(len(points)), len(points), names, box)


def count_names(count: int) -> tuple[str, ...]:
    """What keypoints without names are called."""
    return tuple(str(number) for number in range(count))


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
        return read_csv(file)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    # Many pictures may share one file of COCO's, which can be large.
    status = file.stat()
    stored = _load(file, status.st_mtime_ns, status.st_size)
    if is_coco(stored):
        return _read_object(file, stored, None if image is None else Path(image), wanted)
    if wanted is not None:
        raise ValueError(f"{file} is not in COCO's format, so that #{wanted} names nothing in it")
    return parse_keypoints(stored, str(file))


def split_annotation(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """`people.json#17` as the file and the annotation's id; a file that has such a name is meant itself."""
    whole = Path(os.path.expanduser(path))
    start, mark, wanted = os.fspath(whole).rpartition("#")
    if mark and wanted and not whole.exists() and Path(start).is_file():
        return Path(start), wanted
    return whole, None


@lru_cache(maxsize=4)
def _load(file: Path, changed: int, size: int) -> Any:
    return read_json(file)


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
        return make_keypoints(found.points, found.names, box)
    if not isinstance(given, list) or len(given) != found.length:
        got = f"{len(given)} names" if isinstance(given, list) else type(given).__name__
        raise ValueError(f"{where}: names must be a list with one for each of {found.length} points; got {got}")
    return make_keypoints(found.points, tuple(str(name) for name in given), box)


def _parse_points(stored: Any, where: str) -> Keypoints:
    """`{name: [x, y]}`, `[{"name", "x", "y"}]` or `[[x, y]]`."""
    if isinstance(stored, dict):
        return _name_points(list(stored), list(stored.values()), where)
    if not isinstance(stored, list):
        raise ValueError(f"{where}: keypoints must be an object or a list")
    if not all(isinstance(one, dict) for one in stored):
        return make_keypoints(check_points(stored, where))
    names = [str(one.get("name", row)) for row, one in enumerate(stored)]
    return _name_points(names, [[one.get("x"), one.get("y")] for one in stored], where)


def _name_points(names: Sequence[str], points: list[Any], where: str, lines: Sequence[int] | None = None) -> Keypoints:
    """Named points, checked; names that only count are none."""
    own = tuple(names)
    return make_keypoints(check_points(points, where, own, lines), None if own == count_names(len(own)) else own)


def read_csv(path: Path) -> Keypoints:
    """Lines of name, x, y, or of x, y; with a heading the columns may be more, and in any order."""
    text = read_text(path)
    rows = csv.reader(text.splitlines(), delimiter=_find_delimiter(text))
    try:
        table = [(number, [cell.strip() for cell in row]) for number, row in enumerate(rows, 1)]
    except csv.Error as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    table = [(number, row) for number, row in table if any(row)]
    heading = [cell.lower() for cell in table[0][1]] if table else []
    (label, x, y), headed = _find_columns(heading)
    table, width = table[headed:], len(heading)
    if any(len(row) != width for _, row in table) or (table and width not in (2, 3) and not headed):
        found = next((number for number, row in table if len(row) != width), table[0][0])
        raise ValueError(f"{path}: every line must be name, x, y (or x, y); line {found} is not")
    names = [str(place) if label is None else row[label] for place, (_, row) in enumerate(table)]
    points = [[row[x], row[y]] for _, row in table]
    return _name_points(names, points, str(path), [number for number, _ in table])


def _find_delimiter(text: str) -> str:
    first = text.partition("\n")[0]
    return next((mark for mark in (";", "\t") if mark in first), ",")


def _find_columns(first: Sequence[str]) -> tuple[tuple[int | None, int, int], bool]:
    """Columns of name, x and y from the first line of a file, and whether that line is a heading."""
    if "x" not in first or "y" not in first:
        return ((None, 0, 1) if len(first) == 2 else (0, 1, 2)), False
    name = next((first.index(word) for word in NAMES if word in first), None)
    if name is None and len(first) == 3 and list(first[1:]) == ["x", "y"]:
        name = 0
    return (name, first.index("x"), first.index("y")), True
