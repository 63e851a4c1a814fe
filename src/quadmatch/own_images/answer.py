"""A match of two of a user's pictures as JSON; `schemas/matches.schema.json` says what is in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quadmatch.datasets.keypoints import Keypoints
from quadmatch.datasets.picture import Picture
from quadmatch.datasets.spans import compare_spans
from quadmatch.datasets.turning import AS_GIVEN
from quadmatch.result import MatchResult, to_numpy

FORMAT = 1
SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"


@dataclass(frozen=True)
class Settings:
    """What a match depends on besides the pictures."""

    model: str = "default"
    partial: bool | None = None
    """Leave alone what matches nothing well; None: where keypoints were detected."""
    constraint: bool = True
    detect: int | None = None
    """Keypoints to find where no file has them."""
    orientation: str = AS_GIVEN
    """How the second picture is turned, or `auto`."""
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
            "orientation_asked": self.orientation,
        }

    def is_partial(self, *pictures: Picture) -> bool:
        """Whether these pictures are matched partially: not every detected point has a partner."""
        return any(one.points_file is None for one in pictures) if self.partial is None else self.partial


def read_schema(name: str) -> dict[str, Any]:
    """The JSON schema `matches` or `points`."""
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return schema


def describe_match(result: MatchResult, a: Picture, b: Picture, settings: Settings) -> dict[str, Any]:
    """The match and both pictures, as the schema says: what every door of the package writes."""
    content = settings.to_json() | {
        "partial": settings.is_partial(a, b),
        "image_a": a.file,
        "image_b": b.file,
        **describe_pairs(result, a.keypoints, b.keypoints),
    }
    for letter, picture in (("a", a), ("b", b)):
        content |= _describe_picture(picture, letter)
    if result.matchable is not None:
        content["matchable"] = round(result.matchable, 6)
    if result.orientation is not None:
        content["orientation"] = result.orientation
    doubt = compare_spans(a, b)
    return content | {"warnings": [*a.warnings, *b.warnings, *([doubt] if doubt else [])]}


def describe_pairs(result: MatchResult, a: Keypoints, b: Keypoints) -> dict[str, Any]:
    """Who goes with whom and who is alone, in the user's coordinates and indices: those of the two files."""
    left, right = to_numpy(result.pairs).reshape(-1, 2).T
    return {
        "pairs": np.stack([a.indices[left], b.indices[right]], 1).tolist(),
        "scores": np.round(to_numpy(result.scores).astype(np.float64), 6).tolist(),
        "coordinates": np.concatenate([a.points[left], b.points[right]], 1).tolist(),
        "unmatched_a": np.delete(a.indices, left).tolist(),
        "unmatched_b": np.delete(b.indices, right).tolist(),
    }


def _describe_picture(picture: Picture, letter: str) -> dict[str, Any]:
    own = picture.keypoints
    points: list[list[float] | None] = [None] * own.length
    for index, point in zip(own.indices.tolist(), own.points.tolist()):
        points[index] = point
    return {
        f"size_{letter}": list(picture.size or ()),
        f"points_file_{letter}": picture.points_file,
        f"points_{letter}": points,
        f"names_{letter}": None if own.names is None else list(own.names),
        f"box_{letter}": None if own.box is None else list(own.box),
    }


def dump(content: dict[str, Any]) -> str:
    """JSON with one entry a line: short enough to read, and plain to compare."""
    lines = [f"  {json.dumps(key)}: {dump_line(value)}" for key, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def dump_line(content: Any) -> str:
    """JSON on one line; NaN is refused, as JSON has none."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False)
