"""Keypoints in the XML format "CVAT for images".

A file from outside: no document type (its entities could fill the memory), no tree, few levels.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from xml.parsers import expat

from quadmatch.datasets.boxes import Box, parse_box
from quadmatch.datasets.keypoints import Listed, take_present
from quadmatch.datasets.points import check_count, parse_number
from quadmatch.datasets.texts import read_text

LEVELS = 32
"""Elements within elements: CVAT's own have six."""
Row = tuple[str, list[float] | None]
"""Name and place of a keypoint; None where it is not in the picture."""


class Reader:
    """Hears of each element of a file, and keeps the keypoints and boxes of its pictures."""

    def __init__(self, path: Path) -> None:
        self.path, self.listed, self.open = path, list[Listed](), list[str]()
        self.image = ""
        self.free: list[Row] = []
        self.skeletons: list[list[Row]] = []
        self.boxes: list[Box] = []

    def start(self, tag: str, own: dict[str, str]) -> None:
        """An element begins."""
        if not self.open and tag != "annotations":
            raise ValueError(f"{self.path} has <{tag}>, not CVAT's <annotations>")
        if len(self.open) >= LEVELS:
            raise ValueError(f"{self.path}: its elements are nested too deeply")
        self.open.append(tag)
        where = f"{self.path}, picture {self.image!r}"
        if tag == "track":
            raise ValueError(f"{self.path} is CVAT's format for videos; export it as 'CVAT for images'")
        if tag == "image":
            self.image, self.free, self.skeletons, self.boxes = own.get("name", ""), [], [], []
        elif tag == "skeleton":
            self.skeletons.append([])
        elif tag == "points":
            rows = _read_points(own, where)
            (self.skeletons[-1] if "skeleton" in self.open else self.free).extend(rows)
        elif tag == "box":
            corners = [own.get(side) for side in ("xtl", "ytl", "xbr", "ybr")]
            self.boxes.append(parse_box(corners, f"{where}: box"))

    def end(self, tag: str) -> None:
        """An element ends."""
        self.open.pop()
        if tag != "image":
            return
        objects = [rows for rows in (*self.skeletons, self.free) if rows]
        where = f"{self.path}, picture {self.image!r}"
        for number, rows in enumerate(objects):
            names = _tell_apart([name for name, _ in rows])
            box = self.boxes[0] if len(objects) == len(self.boxes) == 1 else None
            keypoints = take_present([place for _, place in rows], names, box, where)
            self.listed.append(Listed(self.image, str(number), keypoints))


def read_cvat(path: Path) -> list[Listed]:
    """The objects of all pictures: each skeleton is one, and the points outside of skeletons are one."""
    text = read_text(path)
    if "<!DOCTYPE" in text:
        raise ValueError(f"{path} has a document type (<!DOCTYPE …>), which CVAT does not write: it is not read")
    reader, parser = Reader(path), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    return reader.listed


def _read_points(own: dict[str, Any], where: str) -> list[Row]:
    """The keypoints of one element: `points` is x,y, or several with semicolons between them."""
    label, rows, texts = own.get("label", ""), list[Row](), own.get("points", "").split(";")
    check_count(len(texts), where)
    for text in texts:
        numbers = [parse_number(word) for word in text.split(",")]
        if len(numbers) != 2 or None in numbers:
            raise ValueError(f"{where}: points of {label!r} must be x,y with ; between them; got {text!r:.80}")
        place = [number for number in numbers if number is not None]
        rows.append((label, None if own.get("outside") == "1" else place))
    return rows


def _tell_apart(names: list[str]) -> list[str] | None:
    """Names of the keypoints; one that several have gets numbers, and none where all have the same."""
    if len(set(names)) == 1 < len(names) or not any(names):
        return None
    total, seen = Counter(names), Counter[str]()
    own = []
    for name in names:
        seen[name] += 1
        own.append(name if total[name] == 1 else f"{name} {seen[name]}")
    return own
