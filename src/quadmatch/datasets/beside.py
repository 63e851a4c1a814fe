"""Keypoints in a CSV or JSON file beside each picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quadmatch.datasets.annotation import Annotation, Box, clip_box, read_size
from quadmatch.datasets.coco import read_json
from quadmatch.datasets.point_lists import check_names, parse_box, parse_points, read_csv

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")


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
        names, points = read_csv(path)
        check_names(names, str(path))
        return [Annotation(name, category, image, None, names, points)]
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
        names, points = parse_points(row["keypoints"], where)
        check_names(names, where)
        objects.append(Annotation(label, kind, image, box, names, points))
    return objects


def _read_box(row: dict[str, Any], image: Path, where: str) -> Box | None:
    if row.get("box") is None:
        return None
    return clip_box(parse_box(row["box"], where), *read_size(image))
