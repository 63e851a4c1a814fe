"""Landmarks of specimens in a TPS file, as tpsDig writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quadmatch.datasets.keypoints import Keypoints, Listed, take_present
from quadmatch.datasets.points import check_count, parse_number
from quadmatch.datasets.texts import read_text

ENTRY = re.compile(r"\s*([A-Za-z]\w*)\s*=(.*)")
MISSING = ("na", "nan")
"""What stands for a landmark that is not there; two negative numbers do too."""


@dataclass
class Specimen:
    """What stands between one LM= and the next."""

    where: str
    count: int
    rows: list[list[float] | None] = field(default_factory=list)
    skipped: float = 0
    """Lines of curves and outlines to come, which are no landmarks."""
    entries: dict[str, str] = field(default_factory=dict)

    def add(self, line: str, number: int) -> None:
        """Take a line of coordinates."""
        if len(self.rows) < self.count:
            self.rows.append(_read_row(line, f"{self.where}: line {number}"))
        elif self.skipped > 0:
            self.skipped -= 1
        else:
            raise ValueError(f"{self.where}: line {number} is one landmark more than LM={self.count}; got {line!r:.80}")


def read_tps(path: Path) -> list[Listed]:
    """The specimens of a file; y is counted from the lower edge, and SCALE= is left aside, as pixels are wanted."""
    listed = []
    for place, one in enumerate(_read_specimens(path)):
        if len(one.rows) < one.count:
            raise ValueError(f"{one.where}: LM={one.count}, but only {len(one.rows)} landmarks follow")
        keypoints: Keypoints = take_present(one.rows, None, None, one.where)
        listed.append(Listed(one.entries.get("IMAGE") or None, one.entries.get("ID") or str(place), keypoints, True))
    if not listed:
        raise ValueError(f"{path} has no specimen: a TPS file has lines LM=12, then x y of each landmark")
    return listed


def _read_specimens(path: Path) -> Iterator[Specimen]:
    one = None
    for number, line in enumerate(read_text(path).splitlines(), 1):
        entry = ENTRY.fullmatch(line)
        key, value = (entry[1].upper(), entry[2].strip()) if entry else ("", "")
        if key in ("LM", "LM3"):
            if one is not None:
                yield one
            one = Specimen(f"{path}, line {number}", _read_count(key, value, f"{path}, line {number}"))
            check_count(one.count, one.where)
        elif one is None and line.strip():
            raise ValueError(f"{path}: line {number} stands before the first LM=; got {line!r:.80}")
        elif one is not None and key:
            one.entries[key] = value
            # Of the lines of an outline the file does not tell the number.
            one.skipped = _read_count(key, value, one.where) if key == "POINTS" else one.skipped
            one.skipped = float("inf") if key == "OUTLINES" else one.skipped
        elif one is not None and line.strip():
            one.add(line, number)
    if one is not None:
        yield one


def _read_count(key: str, value: str, where: str) -> int:
    if key == "LM3":
        raise ValueError(f"{where}: LM3= has landmarks in space; a picture needs two coordinates, LM=")
    if not value.isdecimal() or len(value) > 9:
        raise ValueError(f"{where}: {key}= needs a number of points; got {value!r:.80}")
    return int(value)


def _read_row(line: str, where: str) -> list[float] | None:
    words = line.split()
    if words and all(word.lower() in MISSING for word in words):
        return None
    numbers = [parse_number(word) for word in words]
    if len(numbers) != 2 or None in numbers:
        raise ValueError(f"{where} must be x y of a landmark; got {line.strip()!r:.80}")
    found = [number for number in numbers if number is not None]
    return None if max(found) < 0 else found


def write_tps(keypoints: Keypoints, image: str, height: int) -> str:
    """One specimen as tpsDig reads it; a landmark that is not there is -1 -1."""
    rows = ["-1.00000 -1.00000"] * keypoints.length
    for place, (x, y) in zip(keypoints.indices.tolist(), keypoints.points.tolist()):
        rows[place] = f"{x:.5f} {height - y:.5f}"
    return "\n".join([f"LM={keypoints.length}", *rows, f"IMAGE={image}", "ID=0", ""])
