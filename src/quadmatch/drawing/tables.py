"""Tables of text: for the screen, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

Lines = Sequence[Sequence[str]]
"""The heading first, then a line for each row."""
LONGEST_NAME = 24
"""Letters of the first column up to which it is not broken into lines."""


def draw_table(lines: Lines, *, title: str = "", caption: str = "", totals: int = 0) -> Table:
    """A table for printing with rich; its last `totals` lines are set apart and bold."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    heading, *rows = lines
    # What stands in a cell is data: rich must not read brackets in it as markup.
    table = Table(title=Text(title) if title else None, caption=Text(caption), box=SIMPLE, padding=(0, 0, 0, 1))
    for number, name in enumerate(heading):
        # Names of classes stay on one line, however narrow the screen; sentences do not.
        whole = not number and max(len(line[0]) for line in lines) <= LONGEST_NAME
        table.add_column(Text(name), justify="right" if number else "left", no_wrap=whole)
    for number, row in enumerate(rows):
        total = number >= len(rows) - totals
        if total and number == len(rows) - totals:
            table.add_section()
        table.add_row(*map(Text, row), style="bold" if total else None)
    return table


def write_markdown(lines: Lines) -> str:
    """A Markdown table, its first column to the left and the others to the right."""
    heading, *rows = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    marks = [":--", *("--:" for _ in heading[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (heading, marks, *rows))
