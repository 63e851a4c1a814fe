"""Fields of a form that are no files: points, names, boxes, numbers, turns and switches, parsed and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from quadmatch.datasets.boxes import Box, parse_box
from quadmatch.datasets.points import check_points
from quadmatch.datasets.texts import parse_json
from quadmatch.datasets.turning import AS_GIVEN, AUTO, ORIENTATIONS, list_orientations
from quadmatch.web.uploads import Limits, Refused


def parse_points(text: Any, name: str, limits: Limits) -> Float[np.ndarray, "K 2"]:
    """Keypoints from the JSON of a field."""
    try:
        points = check_points(parse_json(text), name)
    except (TypeError, ValueError, OverflowError) as error:
        message = f"{name} must be JSON like [[x, y], …] with finite numbers: {str(error)[:200]}"
        raise Refused(400, "bad-points", message) from None
    check_number(points, name, limits)
    return points


def check_number(points: Float[np.ndarray, "K 2"], name: str, limits: Limits) -> None:
    """Refuse points that are too many."""
    if len(points) > limits.points:
        message = f"{name}: at most {limits.points} points a picture, got {len(points)}."
        raise Refused(413, "too-many-points", message)


def check_inside(points: Float[np.ndarray, "K 2"], name: str, width: int, height: int) -> None:
    """Refuse points of which one is not in the picture."""
    outside = np.flatnonzero(((points < 0) | (points > [width, height])).any(1))
    if len(outside):
        x, y = points[outside[0]]
        message = f"{name}: point {outside[0]} at ({x:g}, {y:g}) lies outside the {width} × {height} picture."
        raise Refused(400, "point-outside", message)


def parse_names(text: Any, name: str, count: int) -> tuple[str, ...] | None:
    """Names of the points from the JSON of a field; None where it is missing."""
    reason = ""
    try:
        names = parse_json(text or "null")
    except (TypeError, ValueError) as error:
        names, reason = "", f" {name}: {str(error)[:200]}."
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != count or not all(isinstance(one, str) for one in names):
        raise Refused(400, "bad-names", f"{name} must be JSON with one name for each of the {count} points.{reason}")
    return tuple(names)


def parse_part(text: Any, name: str) -> Box | None:
    """A box from a field, `x0,y0,x1,y1`; None where the field is missing."""
    if not text:
        return None
    try:
        return parse_box(text, name)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused(400, "bad-box", str(error)[:200]) from None


def check_part(box: Box | None, name: str, width: int, height: int) -> None:
    """Refuse a box of which nothing is in the picture."""
    if box is not None and (box[0] >= width or box[1] >= height or min(box[2:]) <= 0):
        raise Refused(400, "bad-box", f"{name}: the box lies outside the {width} × {height} picture.")


def parse_number(text: Any, name: str, least: int, most: int) -> int:
    """A whole number from a field."""
    try:
        number = int(text)
    except (TypeError, ValueError):
        number = least - 1
    if not least <= number <= most:
        raise Refused(400, "bad-number", f"{name} must be a whole number from {least} to {most}.")
    return number


def parse_orientation(text: Any, name: str) -> str:
    """How a picture is turned, from a field; as it is where the field is missing."""
    asked = str(text or AS_GIVEN)
    try:
        list_orientations(asked)
    except ValueError:
        raise Refused(400, "bad-orientation", f"{name} must be {AUTO} or one of {', '.join(ORIENTATIONS)}.") from None
    return asked


def parse_switch(text: Any, name: str) -> bool:
    """`true` or `false` from a field; false where it is missing."""
    if text not in (None, "true", "false"):
        raise Refused(400, "bad-switch", f"{name} must be true or false.")
    return bool(text == "true")
