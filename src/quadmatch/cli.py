"""The command line: one file a command in `quadmatch.commands`, put together here."""

from __future__ import annotations

from typing import Annotated

import typer

from quadmatch.commands import (
    bench,
    data,
    demo,
    evaluate,
    export,
    listing,
    match,
    match_many,
    reproduce,
    serve,
    train,
    transfer,
)
from quadmatch.commands.groups import Command, Commands
from quadmatch.machine import keep_pages

app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> bool:
    if wanted:
        from quadmatch.machine import find_version

        typer.echo(f"quadmatch {find_version()}")
        raise typer.Exit
    return wanted


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Match keypoints and graphs under a quadratic constraint."""
    keep_pages()


app.command("list", cls=Command)(listing.list_names)
app.command(cls=Command)(demo.demo)
app.command(cls=Command)(match.match)
app.command("match-many", cls=Command)(match_many.match_many)
app.command(cls=Command)(transfer.transfer)
app.command(cls=Command)(train.train)
app.command(cls=Command)(evaluate.evaluate)
app.command(cls=Command)(reproduce.reproduce)
app.command(cls=Command)(export.export)
app.command(cls=Command)(serve.serve)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")
