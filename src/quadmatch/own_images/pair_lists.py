"""Lists of pairs of a user's pictures, as a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from quadmatch.datasets.texts import read_text
from quadmatch.datasets.turning import AS_GIVEN
from quadmatch.own_images.places import check_address, fetch, find_folder, hide_secrets, is_remote, locate

COLUMNS = ("image_a", "points_a", "image_b", "points_b", "box_a", "box_b")
Named = tuple[str, str | None, str | None]
"""One picture of a pair as a list names it: the files of picture and keypoints, and the box."""
View = tuple[Named, str]
"""A picture of a list, and the orientation in which it is seen."""


@dataclass(frozen=True)
class Row:
    """One pair of the list."""

    number: int
    """Counted from 1 below the heading."""
    a: Named
    b: Named
    orientations: Sequence[str] = (AS_GIVEN,)
    """In which the second picture is seen; the best match is kept."""

    @property
    def views(self) -> list[View]:
        """What has to be seen for its match: the first picture, then the second in each orientation."""
        return [(self.a, AS_GIVEN), *((self.b, one) for one in self.orientations)]

    def to_json(self) -> dict[str, Any]:
        """Fields of its line, whatever comes of it."""
        return {
            "row": self.number,
            "image_a": hide_secrets(self.a[0]),
            "image_b": hide_secrets(self.b[0]),
            "points_file_a": self.a[1] and hide_secrets(self.a[1]),
            "points_file_b": self.b[1] and hide_secrets(self.b[1]),
        }


def read_pairs(path: str | Path) -> list[Row]:
    """The pairs that a CSV file, at a path or an address, lists under the heading image_a, points_a, image_b, …"""
    check_address(str(path), "the list")
    with fetch(str(path), "the list") as file:
        rows = _parse(read_text(file), file)
    if is_remote(path):
        rows = [replace(row, a=_complete(row.a, str(path)), b=_complete(row.b, str(path))) for row in rows]
    for row in rows:
        for name in (*row.a[:2], *row.b[:2]):
            check_address(name or "", f"{hide_secrets(str(path))}, row {row.number}:")
    return rows


def _complete(named: Named, place: str) -> Named:
    """Names with a question mark as whole addresses: what follows it may be a secret, which is hidden in addresses."""
    image, points = (name and (locate(find_folder(place), name) if "?" in name else name) for name in named[:2])
    return image or "", points, named[2]


def _parse(text: str, path: Path) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        heading = [(name or "").strip() for name in reader.fieldnames or ()]
        reader.fieldnames = heading
        rows = list(reader)
    except csv.Error as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    missing = [name for name in ("image_a", "image_b") if name not in heading]
    unknown = [name for name in heading if name not in COLUMNS]
    if missing or unknown:
        wanted = ",".join(COLUMNS)
        fault = f"has no column {missing[0]}" if missing else f"has an unknown column {unknown[0]!r}"
        raise ValueError(f"{path} {fault}; its first line must be {wanted} (points and boxes may be left out)")
    if longer := next((number for number, row in enumerate(rows, 1) if None in row), None):
        raise ValueError(f"{path}: row {longer} has more cells than the heading; a box x,y,w,h needs quotes")
    cells = [{key: (value or "").strip() or None for key, value in row.items()} for row in rows]
    sides = [[(row[f"image_{s}"] or "", row.get(f"points_{s}"), row.get(f"box_{s}")) for s in "ab"] for row in cells]
    return [Row(number, a, b) for number, (a, b) in enumerate(sides, 1)]
