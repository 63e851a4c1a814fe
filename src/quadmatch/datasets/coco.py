"""Keypoints in COCO's JSON format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.boxes import clip_box, parse_box
from quadmatch.datasets.keypoints import choose_one, find_named
from quadmatch.datasets.pixels import read_size
from quadmatch.datasets.points import check_count, check_points
from quadmatch.datasets.texts import read_json

KEYS = ("images", "annotations", "categories")


def is_coco(stored: Any) -> bool:
    """Whether a JSON file's contents are COCO's."""
    return isinstance(stored, dict) and all(isinstance(stored.get(key), list) for key in KEYS)


def read_coco(path: Path, root: Path, *, crop: bool = True) -> list[Annotation]:
    """Every object with a labelled keypoint; pictures lie below `root`, the box is `bbox` where stated."""
    stored = read_json(path)
    if not is_coco(stored):
        raise ValueError(f"{path} needs the lists {', '.join(KEYS)}")
    categories = index_rows(path, stored, "categories")
    pictures = index_rows(path, stored, "images")
    files = {number: _find_picture(path, root, picture) for number, picture in pictures.items()}
    objects = []
    for number, one in index_rows(path, stored, "annotations").items():
        where = f"{path}, annotation {number}"
        if one.get("iscrowd") or not one.get("keypoints"):
            continue
        look_up(pictures, one, "image_id", where)
        category = look_up(categories, one, "category_id", where)
        names, points, labelled = parse_coco_keypoints(one, category, where)
        if not labelled.any():
            continue
        names = tuple(name for name, there in zip(names, labelled) if there)
        image = files[one["image_id"]]
        kind = str(require(category, "name", f"{path}, category {one['category_id']}"))
        label = f"{kind}/{image.relative_to(root).with_suffix('').as_posix()}_{number}"
        box = None
        if crop and one.get("bbox"):
            box = clip_box(parse_box(one["bbox"], f"{where}: bbox", extent=True), *read_size(image, where))
        objects.append(Annotation(label, kind, image, box, names, points[labelled]))
    return objects


def index_rows(path: Path, stored: dict[str, Any], key: str) -> dict[Any, dict[str, Any]]:
    """Rows of one of the lists by their id."""
    rows: dict[Any, dict[str, Any]] = {}
    for place, row in enumerate(stored[key]):
        if not isinstance(row, dict):
            raise ValueError(f"{path}: {key}[{place}] must be an object")
        number = require(row, "id", f"{path}, {key}[{place}]")
        if not isinstance(number, (int, str)):
            raise ValueError(f"{path}, {key}[{place}]: id must be a number or a text; got {number!r:.80}")
        if number in rows:
            raise ValueError(f"{path}: {key} holds id {number} twice")
        rows[number] = row
    return rows


def require(row: dict[str, Any], key: str, where: str) -> Any:
    """A field, or an error that says where it is missing."""
    if key not in row:
        raise ValueError(f"{where} has no {key}")
    return row[key]


def look_up(rows: dict[Any, dict[str, Any]], one: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """The row that a field names by its id."""
    number = require(one, key, where)
    if not isinstance(number, (int, str)) or number not in rows:
        raise ValueError(f"{where}: {key} {number!r:.80} is not in the file")
    return rows[number]


def _find_picture(path: Path, root: Path, picture: dict[str, Any]) -> Path:
    file = str(require(picture, "file_name", f"{path}, image {picture['id']}"))
    for folder in (path.parent, root, root / "images", path.parent / "images"):
        found = folder / file
        if found.is_file() and found.resolve().is_relative_to(root.resolve()):
            return found
    elsewhere = sorted(root.rglob(Path(file).name))
    if len(elsewhere) != 1:
        raise FileNotFoundError(f"{path}: the picture {file} is not below {root}")
    return elsewhere[0]


def parse_coco_keypoints(
    one: dict[str, Any], category: dict[str, Any], where: str
) -> tuple[tuple[str, ...], Float[np.ndarray, "K 2"], Bool[np.ndarray, " K"]]:
    """Names, positions and whether a keypoint is labelled: COCO's visibility 0 means that it is not there."""
    try:
        rows = np.array(one["keypoints"], dtype=np.float64).reshape(-1, 3)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{where}: keypoints must be numbers x, y, visibility in threes") from None
    check_count(len(rows), where)
    named = category.get("keypoints", range(len(rows)))
    if not isinstance(named, (list, range)):
        raise ValueError(f"{where}: keypoints of its category must be a list of names; got {named!r:.80}")
    names = tuple(str(name) for name in named)
    if len(names) != len(rows):
        raise ValueError(f"{where} has {len(rows)} keypoints, its category names {len(names)}")
    labelled = rows[:, 2] > 0
    own = [name for name, there in zip(names, labelled) if there]
    check_points(rows[labelled, :2], where, own)
    return names, rows[:, :2], labelled


def choose_object(
    file: Path, stored: dict[str, Any], image: Path | None, wanted: str | None
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Id, row and category of the one object of a picture, or of the one whose id is wanted."""
    categories = index_rows(file, stored, "categories")
    found = {
        number: one
        for number, one in index_rows(file, stored, "annotations").items()
        if one.get("keypoints") and not one.get("iscrowd")
    }
    if wanted is None and image is not None:
        pictures = _find_ids(file, stored, image)
        found = {number: one for number, one in found.items() if one.get("image_id") in pictures}
    number, one = choose_one(found, file, image, wanted)
    return number, one, look_up(categories, one, "category_id", f"{file}, annotation {number}")


def _find_ids(file: Path, stored: dict[str, Any], image: Path) -> list[Any]:
    """Ids of the pictures with this file's name."""
    rows = index_rows(file, stored, "images")
    alike = find_named({number: str(one.get("file_name", "")) for number, one in rows.items()}, image)
    if not alike:
        raise ValueError(f"{file} has no picture {image.name}; its file_name must be the same")
    return list(alike)
