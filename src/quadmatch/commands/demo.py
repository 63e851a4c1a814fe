"""`quadmatch demo`: see what the constraint does, without any data of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quadmatch.commands.printing import Quiet, choose_say


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report and its pictures.")] = Path("demo"),
    model: Annotated[str, typer.Option(help="Name or path of the model for photographs.")] = "default",
    photographs: Annotated[bool, typer.Option(help="Match photographs too, not only graphs.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Of the graphs' random points.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Match photographs and graphs with and without the quadratic constraint, and write a page about it."""
    from quadmatch.demo.graphs import show_graphs

    out.mkdir(parents=True, exist_ok=True)
    say = choose_say(quiet)
    if not photographs:
        show_graphs(out, seed, say=say)
        return
    from quadmatch.demo.photographs import show_photographs
    from quadmatch.demo.report import NEXT, write_page
    from quadmatch.models.load import load

    shown = show_photographs(out, load(model), model, say=say)
    page = write_page(out, shown, show_graphs(out, seed, say=say))
    say("")
    typer.echo(f"The report with all pictures: {page.absolute()}")
    say(f"\nWhat to try next:\n{NEXT}")
