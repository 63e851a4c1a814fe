"""`quadmatch reproduce`: a table of the paper from training to print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    table: Annotated[str, typer.Argument(help="willow, voc, voc-f1, or one of the others in the docs.")],
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs of each row; else the table's.")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder of the data set, unpacked or packed.")] = None,
    mirror: Annotated[Path | None, typer.Option(help="Folder that holds its archives, by name.")] = None,
    split: Annotated[str | None, typer.Option(help="Evaluate on this split instead of the table's.")] = None,
    rows: Annotated[list[str] | None, typer.Option("--row", help="Only this row; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option(help="A tenth of the steps, 100 pairs, one seed.")] = False,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Of every experiment, as in training.threads=2.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of runs and results; what is there is reused.")] = Path(
        "results"
    ),
) -> None:
    """Train and evaluate the rows of a table, and print them beside the paper's, mean ± std over seeds."""
    from rich.console import Console

    from quadmatch.reproduce.rows import Settings
    from quadmatch.reproduce.tables import choose_table, reproduce_table

    chosen = choose_table(table, rows)
    console = Console()
    settings = Settings(
        out=out,
        seeds=seeds or (1 if quick else chosen["seeds"]),
        root=mirror or root,
        split=split,
        quick=quick,
        changes=tuple(changes or ()),
        say=lambda line: console.print(line, highlight=False, markup=False),
    )
    console.print(reproduce_table(table, chosen, settings))
