"""A match of two of a user's pictures as JSON; `schemas/matches.schema.json` says what is in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quadmatch.keypoints import Keypoints
from quadmatch.pictures import Box
from quadmatch.result import MatchResult, to_numpy
from quadmatch.sides import Side

FORMAT = 1
SCHEMAS = Path(__file__).resolve().parent / "schemas"


@dataclass(frozen=True)
class Settings:
    """What a match depends on besides the pictures."""

    model: str = "default"
    partial: bool | None = None
    """Leave alone what matches nothing well; None: where keypoints were detected."""
    constraint: bool = True
    detect: int | None = None
    """Keypoints to find where no file has them."""
    precision: str | None = None
    """Of the convolutions; None: what is measured to be best."""

    def to_json(self) -> dict[str, Any]:
        """How each description of a match begins."""
        return {
            "format": FORMAT,
            "model": self.model,
            "precision": self.precision,
            "constraint": self.constraint,
            "detect": self.detect,
        }

    def is_partial(self, *sides: Side) -> bool:
        """Whether these sides are matched partially: not every detected point has a partner."""
        return any(side.source is None for side in sides) if self.partial is None else self.partial


def read_schema(name: str) -> dict[str, Any]:
    """The JSON schema `matches` or `points`."""
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return schema


def describe_match(result: MatchResult, a: Side, b: Side, settings: Settings) -> dict[str, Any]:
    """The match in the user's coordinates and indices: those of the two files."""
    chosen = to_numpy(result.pairs).reshape(-1, 2)
    left, right = chosen[:, 0], chosen[:, 1]
    coordinates = np.concatenate([a.keypoints.points[left], b.keypoints.points[right]], 1)
    content = settings.to_json() | {
        "partial": settings.is_partial(a, b),
        "image_a": a.image,
        "image_b": b.image,
        "pairs": np.stack([a.keypoints.indices[left], b.keypoints.indices[right]], 1).tolist(),
        "scores": _round(to_numpy(result.scores), 6),
        "coordinates": coordinates.tolist(),
        "unmatched_a": _leave(a.keypoints, left),
        "unmatched_b": _leave(b.keypoints, right),
    }
    for letter, side in (("a", a), ("b", b)):
        content |= _describe_side(side, letter)
    return content | {"warnings": [*a.warnings, *b.warnings]}


def _describe_side(side: Side, letter: str) -> dict[str, Any]:
    points: list[list[float] | None] = [None] * side.keypoints.length
    for index, point in zip(side.keypoints.indices.tolist(), side.keypoints.points.tolist()):
        points[index] = point
    box, names = side.keypoints.box, side.keypoints.names
    return {
        f"size_{letter}": list(side.size),
        f"points_file_{letter}": side.source,
        f"points_{letter}": points,
        f"names_{letter}": None if names is None else list(names),
        f"box_{letter}": None if box is None else _list_box(box),
    }


def _list_box(box: Box) -> list[float]:
    return [float(side) for side in box]


def _leave(keypoints: Keypoints, matched: np.ndarray) -> list[int]:
    """Places in the file of the keypoints that have no partner."""
    alone = np.ones(len(keypoints.points), dtype=bool)
    alone[matched] = False
    left: list[int] = keypoints.indices[alone].tolist()
    return left


def _round(values: np.ndarray, digits: int) -> list[float]:
    rounded: list[float] = np.round(values.astype(np.float64), digits).tolist()
    return rounded


def dump(content: dict[str, Any]) -> str:
    """JSON with one entry a line: short enough to read, and plain to compare."""
    lines = [f"  {json.dumps(key)}: {dump_line(value)}" for key, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def dump_line(content: Any) -> str:
    """JSON on one line; NaN is refused, as JSON has none."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False)
