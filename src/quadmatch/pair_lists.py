"""Lists of pairs of a user's pictures, as a CSV file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quadmatch.workshop import Part

COLUMNS = ("image_a", "points_a", "image_b", "points_b")
BOXES = ("box_a", "box_b")


@dataclass(frozen=True)
class Row:
    """One pair of the list."""

    number: int
    """Counted from 1 below the heading."""
    a: Part
    b: Part

    def to_json(self) -> dict[str, Any]:
        """Fields of its line, whatever comes of it."""
        return {
            "row": self.number,
            "image_a": self.a.image,
            "image_b": self.b.image,
            "points_file_a": self.a.points,
            "points_file_b": self.b.points,
        }


def read_pairs(path: Path) -> list[Row]:
    """The pairs that a CSV file lists under the heading image_a, points_a, image_b, points_b[, box_a, box_b]."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            heading = [(name or "").strip() for name in reader.fieldnames or ()]
            reader.fieldnames = heading
            rows = list(reader)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    missing = [name for name in ("image_a", "image_b") if name not in heading]
    unknown = [name for name in heading if name not in (*COLUMNS, *BOXES)]
    if missing or unknown:
        wanted = ",".join((*COLUMNS, *BOXES))
        fault = f"has no column {missing[0]}" if missing else f"has an unknown column {unknown[0]!r}"
        raise ValueError(
            f"{path} {fault}; its first line must be {wanted} (points and boxes may be left out)"
        )
    if longer := next((number for number, row in enumerate(rows, 1) if None in row), None):
        raise ValueError(f"{path}: row {longer} has more cells than the heading; a box x,y,w,h needs quotes")
    cells = [{key: (value or "").strip() or None for key, value in row.items()} for row in rows]
    return [
        Row(
            number,
            *(Part(row[f"image_{s}"] or "", row.get(f"points_{s}"), row.get(f"box_{s}")) for s in "ab"),
        )
        for number, row in enumerate(cells, 1)
    ]
