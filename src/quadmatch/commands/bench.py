"""`quadmatch bench`: speed and quality beside other packages, on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from quadmatch.commands.groups import Command, Commands
from quadmatch.commands.printing import STANDARD, Json, Quiet, check_json, write_result

app = typer.Typer(cls=Commands, help="Measure speed and quality beside other packages.")


@app.callback()
def bench() -> None:
    """Measure speed and quality beside other packages."""


Only = Annotated[list[str] | None, typer.Option(metavar="<name>", help="Only this benchmark; may be repeated.")]
Out = Annotated[Path | None, typer.Option(help="Also write JSON and Markdown into this folder.")]


@app.command(cls=Command)
def solvers(
    only: Only = None,
    qaplib: Annotated[Path | None, typer.Option(help="Folder of QAPLIB's .dat and .sln files.")] = None,
    json: Json = None,
    out: Out = None,
    quiet: Quiet = False,
) -> None:
    """Run the solvers' benchmarks; each row says what was required and whether it is met."""
    from quadmatch.bench import SOLVERS

    _run(SOLVERS, only, qaplib, json, out, quiet)


@app.command(cls=Command)
def images(only: Only = None, json: Json = None, out: Out = None, quiet: Quiet = False) -> None:
    """Run the benchmarks with pictures: models beside SIFT, seconds of a match, serving, training."""
    from quadmatch.bench import IMAGES

    _run(IMAGES, only, None, json, out, quiet)


def _run(
    among: Mapping[str, str],
    only: list[str] | None,
    qaplib: Path | None,
    json: Path | None,
    out: Path | None,
    quiet: bool,
) -> None:
    from quadmatch.bench import run_benches
    from quadmatch.bench.report import count_met, show_rows, write_report

    def say(line: str) -> None:
        if not quiet:
            typer.echo(line, err=True)

    check_json(json)
    report = run_benches(only, among=among, qaplib=qaplib, say=say)
    write_result(json, report, lambda: show_rows(report))
    typer.echo("{} of {} requirements met".format(*count_met(report["rows"])), err=json == STANDARD)
    if out is not None:
        say(f"written to {write_report(report, out)}")
