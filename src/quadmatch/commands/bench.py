"""`quadmatch bench`: speed and quality beside other packages, on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Measure speed and quality beside other packages.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure speed and quality beside other packages."""


Only = Annotated[list[str] | None, typer.Option(help="Only this benchmark; may be repeated.")]
Json = Annotated[Path | None, typer.Option(help="Also write the rows to this file.")]
Out = Annotated[Path | None, typer.Option(help="Also write JSON and Markdown into this folder.")]


@app.command()
def solvers(
    only: Only = None,
    qaplib: Annotated[Path | None, typer.Option(help="Folder of QAPLIB's .dat and .sln files.")] = None,
    json: Json = None,
    out: Out = None,
) -> None:
    """Run the solvers' benchmarks; each row says what was required and whether it is met."""
    from quadmatch.bench import SOLVERS

    _run(SOLVERS, only, qaplib, json, out)


@app.command()
def images(only: Only = None, json: Json = None, out: Out = None) -> None:
    """Run the benchmarks with pictures: models beside SIFT, seconds of a match, serving, training."""
    from quadmatch.bench import IMAGES

    _run(IMAGES, only, None, json, out)


def _run(
    among: Mapping[str, str],
    only: list[str] | None,
    qaplib: Path | None,
    json: Path | None,
    out: Path | None,
) -> None:
    from quadmatch.bench import run_benches
    from quadmatch.bench.report import count_met, show_rows, write_report
    from quadmatch.files import write_json

    report = run_benches(only, among=among, qaplib=qaplib, say=lambda line: typer.echo(line, err=True))
    show_rows(report)
    typer.echo("{} of {} requirements met".format(*count_met(report["rows"])))
    if json is not None:
        write_json(json, report)
    if out is not None:
        typer.echo(f"written to {write_report(report, out)}")
