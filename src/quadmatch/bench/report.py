"""Rows of figures as a table on the screen and as files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quadmatch.bench.measurement import Row
from quadmatch.drawing.tables import draw_table, write_markdown
from quadmatch.files import write_file, write_json

COLUMNS = ("name", "size", "ours", "peer", "ratio", "required", "met")


def show_rows(report: dict[str, Any]) -> None:
    """Print the report as a table."""
    from rich.console import Console

    Console().print(draw_table(list_lines(report), caption=describe(report["origin"])))


def write_report(report: dict[str, Any], folder: Path) -> Path:
    """Write `<date>.json` and `<date>.md` into the folder."""
    name = report["origin"]["date"].replace(":", "").partition("+")[0]
    write_json(folder / f"{name}.json", report, make_folder=True)
    lines = [f"# Benchmarks of {name}", "", describe(report["origin"]), ""]
    lines.append(write_markdown(list_lines(report)))
    notes = [f"- {row['name']}, {row['size']}: {text}" for row in report["rows"] if (text := describe_rest(row))]
    if notes:
        lines += ["", "Beside these figures:", "", *notes]
    return write_file(folder / f"{name}.md", ("\n".join(lines) + "\n").encode())


def describe(origin: dict[str, str]) -> str:
    """Where figures come from, in a line."""
    return ", ".join(f"{key} {value}" for key, value in origin.items() if value)


def list_lines(report: dict[str, Any]) -> list[list[str]]:
    """The common columns of the rows as text, heading first; what a row does not have stays empty."""
    rows = ([format_value(_find(row, column)) for column in COLUMNS] for row in report["rows"])
    return [list(COLUMNS), *rows]


def describe_rest(row: Row) -> str:
    """What a row says beyond the common columns."""
    known = {*COLUMNS, "ours_seconds", "peer_seconds"}
    return ", ".join(f"{key.replace('_', ' ')} {format_value(value)}" for key, value in row.items() if key not in known)


def _find(row: Row, column: str) -> object:
    # Rows that compare times name them so; their peer's name is a remark.
    return row.get(f"{column}_seconds", row.get(column))


def format_value(value: object) -> str:
    """A figure with four digits, a truth as yes or no."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def count_met(rows: Iterable[Row]) -> tuple[int, int]:
    """How many rows are met, and how many have a requirement."""
    judged = [bool(row["met"]) for row in rows if row.get("met") is not None]
    return sum(judged), len(judged)
