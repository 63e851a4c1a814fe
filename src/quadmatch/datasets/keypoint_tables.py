"""Keypoints in tables: CSV in its several forms, and what ImageJ saves."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from quadmatch.datasets.keypoints import Keypoints, count_names, name_points
from quadmatch.datasets.points import MOST, check_count, parse_number
from quadmatch.datasets.texts import read_text

SUFFIXES = (".csv", ".tsv", ".txt")
NAMES = ("name", "label", "id")
"""Headings of a column that names the keypoints."""

Line = tuple[int, list[str]]
"""Its number in the file, and its cells."""


def read_table(path: Path) -> Keypoints:
    """Lines of name, x, y, or of x, y; with a heading the columns may be more, and in any order."""
    table = _read_lines(path)
    heading = [cell.lower() for cell in table[0][1]] if table else []
    (label, x, y), headed = _find_columns(heading, path)
    table, width = table[headed:], len(heading)
    if any(len(row) != width for _, row in table) or (table and width not in (2, 3) and not headed):
        found = next(((number, row) for number, row in table if len(row) != width), table[0])
        raise ValueError(f"{path}: every line must be name, x, y (or x, y); line {found[0]} is not{_advise(found[1])}")
    names = [str(place) if label is None else row[label] for place, (_, row) in enumerate(table)]
    if names and label is not None and heading[label] == "label" and len(set(names)) < len(names):
        names = list(count_names(len(names)))  # ImageJ's: the picture's name in every line.
    points = [[_read_cell(row[x]), _read_cell(row[y])] for _, row in table]
    return name_points(names, list(points), str(path), [number for number, _ in table])


def _read_lines(path: Path) -> list[Line]:
    """Lines with something in them, as cells."""
    lines = read_text(path).splitlines()
    if len(lines) > 2 * MOST:  # Cells take more room than lines, so that these are counted first.
        check_count(sum(map(bool, map(str.strip, lines))) - 1, f"{path}, below its first line,")
    mark, blanks = _find_delimiter(lines), (line.split() for line in lines)
    rows: Iterable[list[str]] = blanks if mark == " " else csv.reader(lines, delimiter=mark)
    try:
        table = [(number, [cell.strip() for cell in row]) for number, row in enumerate(rows, 1)]
    except csv.Error as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    return [(number, row) for number, row in table if any(row)]


def _find_delimiter(lines: Sequence[str]) -> str:
    """What is between the cells: blanks only where the first line is two or three words, the last two numbers."""
    first = next((line for line in lines if line.strip()), "")
    if mark := next((mark for mark in (";", "\t") if mark in first), ""):
        return mark
    words = first.split()
    bare = len(words) in (2, 3) and all(parse_number(word) is not None for word in words[-2:])
    return " " if bare and not any(word.endswith(",") for word in words) else ","


def _read_cell(cell: str) -> float | str:
    number = parse_number(cell)
    return cell if number is None else number


def _advise(row: Sequence[str]) -> str:
    """What may be behind a line with too many cells."""
    if len(row) in (4, 5) and all(parse_number(cell) is not None for cell in row[-4:]):
        return "; numbers with decimal commas need semicolons between the cells, as in 156,5;103,5"
    return ""


def _find_columns(first: Sequence[str], path: Path) -> tuple[tuple[int | None, int, int], bool]:
    """Columns of name, x and y from the first line of a file, and whether that line is a heading."""
    if "x" not in first or "y" not in first:
        if first and all(parse_number(cell) is None for cell in first):
            raise ValueError(f"{path}: no columns x and y; found {', '.join(cell or '(no name)' for cell in first)}")
        return ((None, 0, 1) if len(first) == 2 else (0, 1, 2)), False
    name = next((first.index(word) for word in NAMES if word in first), None)
    if name is None and len(first) == 3 and list(first[1:]) == ["x", "y"] and first[0]:
        name = 0
    return (name, first.index("x"), first.index("y")), True
