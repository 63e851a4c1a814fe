"""Keypoints in COCO's JSON format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from quadmatch.datasets.annotation import Annotation, Box, clip_box, read_size

KEYS = ("images", "annotations", "categories")


def read_json(path: Path) -> Any:
    """A JSON file, or an error that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error


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
        box = _read_box(one, image, where) if crop else None
        objects.append(Annotation(label, kind, image, box, names, points[labelled]))
    return objects


def index_rows(path: Path, stored: dict[str, Any], key: str) -> dict[Any, dict[str, Any]]:
    """Rows of one of the lists by their id."""
    rows: dict[Any, dict[str, Any]] = {}
    for place, row in enumerate(stored[key]):
        if not isinstance(row, dict):
            raise ValueError(f"{path}: {key}[{place}] must be an object")
        number = require(row, "id", f"{path}, {key}[{place}]")
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
    if number not in rows:
        raise ValueError(f"{where}: {key} {number} is not in the file")
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
    except (TypeError, ValueError):
        raise ValueError(f"{where}: keypoints must be numbers x, y, visibility in threes") from None
    names = tuple(str(name) for name in category.get("keypoints", range(len(rows))))
    if len(names) != len(rows):
        raise ValueError(f"{where} has {len(rows)} keypoints, its category names {len(names)}")
    return names, rows[:, :2], rows[:, 2] > 0


def parse_bbox(stored: Any, where: str) -> Box:
    """COCO's x, y, width, height as (x0, y0, x1, y1)."""
    try:
        x, y, width, height = (float(number) for number in stored)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: bbox must be x, y, width, height; got {stored!r}") from None
    return x, y, x + width, y + height


def _read_box(one: dict[str, Any], image: Path, where: str) -> Box | None:
    return clip_box(parse_bbox(one["bbox"], where), *read_size(image)) if one.get("bbox") else None
