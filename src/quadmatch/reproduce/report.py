"""A reproduced table beside the paper's: printed, as JSON and as Markdown."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Row:
    """Figures of one method in percent, class by class and `mean`."""

    label: str
    seeds: list[dict[str, float]]
    """One dictionary a seed."""
    paper: dict[str, float]
    """Empty where the paper has no such row."""

    def average(self, name: str) -> float:
        """Over the seeds."""
        return fmean(one[name] for one in self.seeds)

    def spread(self, name: str) -> float | None:
        """Standard deviation over the seeds; None for one."""
        return stdev(one[name] for one in self.seeds) if len(self.seeds) > 1 else None

    def describe(self, name: str) -> str:
        """As in `96.4 ± 0.3`."""
        spread = self.spread(name)
        return f"{self.average(name):.1f}" + ("" if spread is None else f" ± {spread:.1f}")


def build_row(label: str, results: Sequence[Mapping[str, Any]], figure: str, paper: dict[str, float]) -> Row:
    """A row from evaluations as JSON."""
    seeds = [
        {name: scores[figure] for name, scores in [*result["classes"].items(), ("mean", result["mean"])]}
        for result in results
    ]
    return Row(label, seeds, paper)


def read_published(table: str) -> tuple[str, dict[str, dict[str, float]]]:
    """Title of a table of the paper, and its rows: figures by class and `mean`."""
    text = (resources.files("quadmatch.reproduce") / "published.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)[table]
    rows = {name: dict(zip(content["columns"], figures)) for name, figures in content["rows"].items()}
    return content["title"], rows


def list_lines(rows: Sequence[Row]) -> list[list[str]]:
    """Heading, then a line a class with our figure and the paper's of each method, and the mean last."""
    names = sorted({name for row in rows for name in row.seeds[0]} - {"mean"})
    columns = [pair for row in rows for pair in ((row, False), (row, True)) if row.paper or not pair[1]]
    lines = [["class", *(f"{row.label}, paper" if paper else row.label for row, paper in columns)]]
    for name in (*names, "mean"):
        cells = [f"{row.paper[name]:.1f}" if paper else row.describe(name) for row, paper in columns]
        lines.append([name, *cells])
    return lines


def draw_table(title: str, caption: str, rows: Sequence[Row]) -> Table:
    """For printing with rich."""
    from rich.box import SIMPLE
    from rich.table import Table

    heading, *lines = list_lines(rows)
    table = Table(title=title, caption=caption, box=SIMPLE, padding=(0, 0, 0, 1))
    for number, name in enumerate(heading):
        table.add_column(name, justify="right" if number else "left", no_wrap=not number)
    for line in lines:
        if line[0] == "mean":
            table.add_section()
        table.add_row(*line, style="bold" if line[0] == "mean" else None)
    return table


def write_markdown(title: str, caption: str, rows: Sequence[Row]) -> str:
    """The same as a Markdown table."""
    heading, *lines = list_lines(rows)
    marks = [":--", *("--:" for _ in heading[1:])]
    text = ["| " + " | ".join(line) + " |" for line in (heading, marks, *lines)]
    return f"# {title}\n\n" + "\n".join(text) + f"\n\n{caption}\n"
