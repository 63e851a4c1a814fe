"""Points as numbers, checked: whatever a user or a file gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from quadmatch.graphs.arrays import has_masked

COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
"""A number with a decimal comma."""
MOST = 5_000
"""Keypoints of one picture: a match compares all pairs of them, and of more it takes minutes and tens of gigabytes."""


def parse_number(text: str) -> float | None:
    """A number from a file, with a decimal point or a decimal comma; None if it is none."""
    word = text.strip()
    try:
        return float(word.replace(",", ".") if COMMA.fullmatch(word) else word)
    except ValueError:
        return None


def check_count(count: int, where: str) -> None:
    """Refuse more keypoints than a picture may have."""
    if count > MOST:
        raise ValueError(f"{where} has {count:,} keypoints; a picture may have {MOST:,}: keep only those that matter")


def check_points(
    points: Any, where: str = "points", names: Sequence[str] | None = None, lines: Sequence[int] | None = None
) -> Float[np.ndarray, "K 2"]:
    """(x, y) of each keypoint as float64; the first that is not two finite numbers is named.

    `names` are what errors call the keypoints, else they are counted; `lines` are where they stand in a file.
    """
    check_count(len(points) if isinstance(points, (list, tuple)) else next(iter(np.shape(points)), 0), where)
    if has_masked(points):
        raise ValueError(f"{where} has masked entries, which have no value: leave these keypoints out")
    try:
        array = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.full((1, 2), np.nan)
    if array.size == 0 and array.ndim <= 2:
        return np.zeros((0, 2))
    if array.ndim == 2 and array.shape[1] == 2 and np.isfinite(array).all():
        return array
    rows = points.tolist() if hasattr(points, "tolist") else points
    for row, point in enumerate(rows if isinstance(rows, (list, tuple)) else ()):
        line = f", line {lines[row]}" if lines else ""
        _check_point(point, f"{where}{line}: keypoint {names[row] if names else str(row)!r}")
    raise ValueError(f"{where} must be [[x, y], …], one (x, y) a keypoint; got {points!r:.80}")


def _check_point(point: Any, name: str) -> None:
    try:
        if isinstance(point, str):
            raise TypeError
        x, y = (float(number) for number in point)
    except OverflowError:
        raise ValueError(f"{name} has a number that is too large; got {point!r:.80}") from None
    except (TypeError, ValueError):
        raise ValueError(f"{name} needs two numbers x, y; got {point!r:.80}") from None
    if not (np.isfinite(x) and np.isfinite(y)):
        raise ValueError(f"{name} must be finite, got {point!r}")
