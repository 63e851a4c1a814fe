"""The command line: one file a command in `quadmatch.commands`, put together here."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from quadmatch.commands import bench, data, demo, evaluate, export, match, match_many, reproduce, serve, train


class Commands(TyperGroup):
    """Says what is wrong with an input in one line; QUADMATCH_TRACEBACK=1 shows where it was found."""

    def invoke(self, context: Any) -> Any:
        """Run the command that the words name."""
        try:
            return super().invoke(context)
        except (ValueError, TypeError, OSError, ImportError) as error:
            if os.environ.get("QUADMATCH_TRACEBACK"):
                raise
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)


def _show_version(wanted: bool) -> bool:
    if wanted:
        from quadmatch.provenance import find_version

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


app.command()(demo.demo)
app.command()(match.match)
app.command("match-many")(match_many.match_many)
app.command()(train.train)
app.command()(evaluate.evaluate)
app.command()(reproduce.reproduce)
app.command()(export.export)
app.command()(serve.serve)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")

if __name__ == "__main__":
    app()
