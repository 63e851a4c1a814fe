"""Keypoints in labelme's JSON format."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quadmatch.datasets.boxes import Box, parse_box
from quadmatch.datasets.keypoints import Listed, count_names, name_points


def is_labelme(stored: Any) -> bool:
    """Whether a JSON file's contents are labelme's."""
    return isinstance(stored, dict) and isinstance(stored.get("shapes"), list)


def parse_labelme(stored: dict[str, Any], where: str) -> list[Listed]:
    """An object for each group of shapes: its points, and its rectangle as the box if it has one."""
    groups: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for number, shape in enumerate(stored["shapes"]):
        place = f"{where}, shapes[{number}]"
        if not isinstance(shape, dict) or not isinstance(shape.get("points"), list):
            raise ValueError(f"{place} must be an object with points")
        group = shape.get("group_id")
        groups.setdefault("" if group is None else str(group), []).append((place, shape))
    found = [_read_group(number, shapes, where) for number, shapes in groups.items()]
    listed = [one for one in found if one is not None]
    if not listed:
        raise ValueError(f"{where} has no shape of the type point")
    return listed


def _read_group(number: str, shapes: list[tuple[str, dict[str, Any]]], where: str) -> Listed | None:
    points = [(place, shape) for place, shape in shapes if shape.get("shape_type", "point") == "point"]
    if not points:
        return None
    for place, shape in points:
        if len(shape["points"]) != 1:
            raise ValueError(f"{place}: a point has one place; got {len(shape['points'])}")
    names = [str(shape.get("label") or count) for count, (_, shape) in enumerate(points)]
    if len(set(names)) == 1 < len(names):  # One label for all says what the object is, not which point is which.
        names = list(count_names(len(names)))
    rectangles = [(place, shape["points"]) for place, shape in shapes if shape.get("shape_type") == "rectangle"]
    keypoints = name_points(names, [shape["points"][0] for _, shape in points], where)
    box = _read_box(*rectangles[0]) if len(rectangles) == 1 else None
    return Listed(None, number or "0", replace(keypoints, box=box))


def _read_box(place: str, corners: list[Any]) -> Box:
    try:
        (x0, y0), (x1, y1) = ((float(x), float(y)) for x, y in corners)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{place}: a rectangle is two corners [[x, y], [x, y]]; got {corners!r:.80}") from None
    return parse_box([min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)], place)
