"""Keypoints as people write them down: rows of a CSV file, lists and objects of a JSON file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from quadmatch.datasets.annotation import Box

Keypoints = tuple[tuple[str, ...], Float[np.ndarray, "K 2"]]

NAMES = ("name", "label", "id")
"""Headings of a CSV column that names the keypoints."""


def read_csv(path: Path) -> Keypoints:
    """Lines of name, x, y, or of x, y; with a heading the columns may be more, and in any order."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            text = file.read()
        lines = csv.reader(text.splitlines(), delimiter=_find_delimiter(text))
        rows = [(number, [cell.strip() for cell in row]) for number, row in enumerate(lines, 1)]
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    rows = [(number, row) for number, row in rows if any(row)]
    heading = [cell.lower() for cell in rows[0][1]] if rows else []
    if "x" in heading and "y" in heading:
        name = next((heading.index(word) for word in NAMES if word in heading), None)
        if name is None and len(heading) == 3 and heading[1:] == ["x", "y"]:
            name = 0
        columns, width, rows = (name, heading.index("x"), heading.index("y")), len(heading), rows[1:]
    else:
        width = len(heading)
        columns = (None, 0, 1) if width == 2 else (0, 1, 2)
    if any(len(row) != width for _, row in rows) or (rows and width not in (2, 3) and "x" not in heading):
        found = next((number for number, row in rows if len(row) != width), rows[0][0])
        raise ValueError(f"{path}: every line must be name, x, y (or x, y); line {found} is not")
    label, x, y = columns
    names = [str(place) if label is None else row[label] for place, (_, row) in enumerate(rows)]
    wheres = [f"{path}, line {number}" for number, _ in rows]
    return tuple(names), check_points(names, [[row[x], row[y]] for _, row in rows], wheres)


def _find_delimiter(text: str) -> str:
    first = text.partition("\n")[0]
    return next((mark for mark in (";", "\t") if mark in first), ",")


def parse_points(stored: Any, where: str) -> Keypoints:
    """`{name: [x, y]}`, `[{"name", "x", "y"}]` or `[[x, y]]`."""
    if isinstance(stored, dict):
        names, points = list(stored), list(stored.values())
    elif not isinstance(stored, list):
        raise ValueError(f"{where}: keypoints must be an object or a list")
    elif all(isinstance(one, dict) for one in stored):
        names = [str(one.get("name", place)) for place, one in enumerate(stored)]
        points = [[one.get("x"), one.get("y")] for one in stored]
    else:
        names, points = [str(place) for place in range(len(stored))], stored
    return tuple(names), check_points(names, points, [where] * len(names))


def check_points(names: list[str], points: list[Any], wheres: list[str]) -> Float[np.ndarray, "K 2"]:
    """The points as numbers; one that is not two finite numbers is named."""
    numbers = []
    for name, point, where in zip(names, points, wheres):
        try:
            x, y = (float(number) for number in point)
        except (TypeError, ValueError):
            raise ValueError(f"{where}: keypoint {name!r} needs two numbers x, y; got {point!r}") from None
        if not (np.isfinite(x) and np.isfinite(y)):
            raise ValueError(f"{where}: keypoint {name!r} must be finite, got {point!r}")
        numbers.append((x, y))
    return np.array(numbers, dtype=np.float64).reshape(-1, 2)


def check_names(names: tuple[str, ...], where: str) -> None:
    """Refuse a name that is there twice."""
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{where}: keypoint {twice!r} is there twice")


def parse_box(stored: Any, where: str) -> Box:
    """(x0, y0, x1, y1) as it stands in a JSON file."""
    try:
        x0, y0, x1, y1 = (float(number) for number in stored)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: box must be x0, y0, x1, y1; got {stored!r}") from None
    return x0, y0, x1, y1
