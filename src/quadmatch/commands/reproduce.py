"""`quadmatch reproduce`: a table or figure of the paper, from training to print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quadmatch.commands.engine_options import Address, Engine, Workers, choose_cluster
from quadmatch.commands.printing import STANDARD, Json, Quiet, check_json, write_result
from quadmatch.reproduce import ITEMS

KNOWN = "\n\n".join([*(f"{name}: {item.about}." for name, item in ITEMS.items()), "all: everything, in this order."])


def reproduce(
    item: Annotated[
        str, typer.Argument(help=f"One of these:\n\n{KNOWN}", metavar="NAME", autocompletion=lambda: [*ITEMS, "all"])
    ],
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs of each row; else the table's.")] = None,
    root: Annotated[Path | None, typer.Option(exists=True, help="Folder of the data set, unpacked or packed.")] = None,
    mirror: Annotated[Path | None, typer.Option(exists=True, help="Folder that holds its archives, by name.")] = None,
    split: Annotated[str | None, typer.Option(help="Evaluate on this split instead of the table's.")] = None,
    rows: Annotated[
        list[str] | None, typer.Option("--row", metavar="<name>", help="Only this row of a table; may be repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="A tenth of the steps, 100 pairs, one seed.")] = False,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="<key=value>", help="Of every experiment: training.threads=2.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of runs and results; what is there is reused.")] = Path("results"),
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Make a table or figure of the paper; a table's rows stand beside the paper's, mean ± std over seeds."""
    from rich.console import Console

    from quadmatch.drawing.tables import draw_table
    from quadmatch.reproduce.items import Figure, Output, Settings
    from quadmatch.reproduce.making import ALL, choose_item, reproduce_all, reproduce_item

    check_json(json)
    if item == ALL and rows:
        raise ValueError("--row belongs to one table: name it, instead of all")
    chosen = None if item == ALL else choose_item(item, rows)
    console, progress = Console(), Console(stderr=json == STANDARD, quiet=quiet)
    settings = Settings(
        out=out,
        seeds=seeds,
        root=mirror or root,
        split=split,
        quick=quick,
        changes=tuple(changes or ()),
        say=lambda line: progress.print(line, highlight=False, markup=False),
        cluster=choose_cluster(engine, address, workers),
    )
    if settings.cluster is not None and isinstance(chosen, Figure):
        raise ValueError(f"{item} is a figure, which one process makes: --engine ray shares out the rows of a table")

    def show(made: Output) -> None:
        if made.lines:
            console.print(draw_table(made.lines, title=made.title, caption=made.caption, totals=made.totals))

    if chosen is not None:
        made = reproduce_item(item, chosen, settings)
        return write_result(json, made.record, lambda: show(made))
    records, failed = {}, []
    for name, found in reproduce_all(settings):
        if isinstance(found, Output):
            records[name] = found.record
            if json != STANDARD:
                show(found)
        else:
            failed.append(f"{name}: {found}")
            settings.say(f"left out: {failed[-1]}")
    write_result(json, records, lambda: None)
    if failed:
        raise ValueError("not everything could be made:\n" + "\n".join(failed))
