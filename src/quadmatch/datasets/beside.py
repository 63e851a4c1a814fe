"""Keypoints in a CSV or JSON file beside each picture."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from quadmatch.datasets.annotation import Annotation, Box, clip_box, read_size
from quadmatch.datasets.coco import read_json

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")

Keypoints = tuple[tuple[str, ...], Float[np.ndarray, "K 2"]]


def list_pictures(root: Path) -> list[Path]:
    """Every picture below a folder, in order of name."""
    files = (path for path in root.rglob("*") if path.suffix.lower() in PICTURES)
    return sorted(path for path in files if path.is_file() and not path.name.startswith("."))


def read_beside(root: Path, *, crop: bool = True) -> list[Annotation]:
    """An object for each picture that has keypoints beside it; its category is its folder below `root`."""
    objects: list[Annotation] = []
    for image in list_pictures(root):
        found = [image.with_suffix(suffix) for suffix in (".csv", ".json")]
        found = [path for path in found if path.is_file()]
        if len(found) > 1:
            raise ValueError(f"{image} has keypoints in both {found[0].name} and {found[1].name}: keep one")
        if found:
            objects += _read(found[0], image, root, crop)
    return objects


def _read(path: Path, image: Path, root: Path, crop: bool) -> list[Annotation]:
    name = image.relative_to(root).with_suffix("").as_posix()
    category = image.parent.relative_to(root).as_posix()
    category = "object" if category == "." else category
    if path.suffix == ".csv":
        return [Annotation(name, category, image, None, *_read_csv(path))]
    stored = read_json(path)
    several = isinstance(stored, dict) and "objects" in stored
    rows = stored["objects"] if several else [stored]
    if not isinstance(rows, list):
        raise ValueError(f"{path}: objects must be a list")
    objects = []
    for number, row in enumerate(rows):
        where = f"{path}, object {number}" if several else str(path)
        if not isinstance(row, dict) or "keypoints" not in row:
            raise ValueError(f"{where} has no keypoints")
        label = f"{name}_{number}" if several else name
        kind = str(row.get("category", category))
        box = _read_box(row, image, where) if crop else None
        objects.append(Annotation(label, kind, image, box, *_read_keypoints(row["keypoints"], where)))
    return objects


def _read_csv(path: Path) -> Keypoints:
    """Rows of name, x, y, or of x, y; a heading may be there."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    rows = [row for row in rows if any(row)]
    if rows and [cell.lower() for cell in rows[0]][-2:] == ["x", "y"]:
        rows = rows[1:]
    if any(len(row) not in (2, 3) or len(row) != len(rows[0]) for row in rows):
        raise ValueError(f"{path}: every line must be name, x, y (or x, y)")
    names = [row[0] if len(row) == 3 else str(number) for number, row in enumerate(rows)]
    return _check(names, [row[-2:] for row in rows], str(path))


def _read_keypoints(stored: Any, where: str) -> Keypoints:
    """`{name: [x, y]}`, `[{"name", "x", "y"}]` or `[[x, y]]`."""
    if isinstance(stored, dict):
        return _check(list(stored), list(stored.values()), where)
    if not isinstance(stored, list):
        raise ValueError(f"{where}: keypoints must be an object or a list")
    if all(isinstance(one, dict) for one in stored):
        points = [[one.get("x"), one.get("y")] for one in stored]
        return _check([str(one.get("name", number)) for number, one in enumerate(stored)], points, where)
    return _check([str(number) for number in range(len(stored))], stored, where)


def _check(names: list[str], points: list[Any], where: str) -> Keypoints:
    for name, point in zip(names, points):
        try:
            x, y = (float(number) for number in point)
        except (TypeError, ValueError):
            raise ValueError(f"{where}: keypoint {name!r} needs two numbers x, y; got {point!r}") from None
        if not (np.isfinite(x) and np.isfinite(y)):
            raise ValueError(f"{where}: keypoint {name!r} must be finite, got {point!r}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{where}: keypoint {twice!r} is there twice")
    return tuple(names), np.array(points, dtype=np.float64).reshape(-1, 2)


def _read_box(row: dict[str, Any], image: Path, where: str) -> Box | None:
    if row.get("box") is None:
        return None
    try:
        x0, y0, x1, y1 = (float(number) for number in row["box"])
    except (TypeError, ValueError):
        raise ValueError(f"{where}: box must be x0, y0, x1, y1; got {row['box']!r}") from None
    return clip_box((x0, y0, x1, y1), *read_size(image))
