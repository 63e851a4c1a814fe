"""`quadmatch match-many`: a list of pairs of photographs, a line of JSON for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadmatch.commands.engine_options import Address, Engine, Workers, choose_cluster
from quadmatch.commands.picture_options import Constraint, Detect, Model, Orientation, Partial
from quadmatch.commands.printing import Quiet

if TYPE_CHECKING:
    from quadmatch.launch.cluster import Cluster
    from quadmatch.own_images.engine import Engine as MatchingEngine
    from quadmatch.own_images.engine import Report

SHOWN = 50
"""Errors that are listed; all are in the file."""


def match_many(
    pairs: Annotated[
        str, typer.Argument(help="CSV of image_a,points_a,image_b,points_b[,box_a,box_b]; paths from its folder.")
    ],
    out: Annotated[
        Path, typer.Option(help="One line of JSON a pair, or a table (.parquet); what it has is not done again.")
    ],
    model: Model = "default",
    detect: Detect = None,
    partial: Partial = None,
    constraint: Constraint = True,
    orientation: Orientation = "0",
    memory: Annotated[float, typer.Option(min=0, help="Gigabytes of features that are kept.")] = 1.0,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:
    """Match many pairs, each picture's features computed once; goes on where it was stopped."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from quadmatch.datasets.turning import list_orientations
    from quadmatch.files import check_target
    from quadmatch.models.load import find_model, load
    from quadmatch.own_images.pair_lists import read_pairs

    rows = read_pairs(pairs)
    check_target(out)
    find_model(model)
    list_orientations(orientation)
    from quadmatch.own_images.answer import Settings
    from quadmatch.own_images.bulk import match_many as run
    from quadmatch.own_images.places import find_folder

    chosen = _choose_engine(choose_cluster(engine, address, workers))
    columns = TextColumn("pairs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True, quiet=quiet), transient=True) as bar:
        task = bar.add_task("pairs", total=len(rows))
        report = run(
            rows,
            find_folder(pairs),
            out,
            lambda name, precision: load(name, precision=precision),
            Settings(model, partial, constraint, detect, orientation),
            memory=int(memory * 2**30),
            progress=lambda done, total: bar.update(task, completed=done, total=total),
            engine=chosen,
        )
    _tell(report, out, quiet)


def _choose_engine(cluster: Cluster | None) -> MatchingEngine:
    """What matches the groups: this process, or the workers of a cluster."""
    if cluster is None:
        from quadmatch.own_images.engine import match_here

        return match_here
    from quadmatch.launch.pairs import match_on_ray

    return match_on_ray(cluster)


def _tell(report: Report, out: Path, quiet: bool) -> None:
    """Say what came of the list, and end with an error if a pair has one."""
    if report.resumed and not quiet:
        typer.echo(f"{report.resumed} pairs were there already")
    if not quiet and report.pictures:
        typer.echo(f"{report.pictures} pictures, features computed of {report.prepared}")
    if not quiet:
        typer.echo(f"{report.pairs - len(report.errors)} of {report.pairs} pairs matched, written to {out}")
    if report.errors:
        typer.echo(f"{len(report.errors)} could not be matched:", err=True)
        for number, message in report.errors[:SHOWN]:
            typer.echo(f"  row {number}: {message}", err=True)
        if len(report.errors) > SHOWN:
            typer.echo(f"  … and {len(report.errors) - SHOWN} more, each with an error in {out}", err=True)
        raise typer.Exit(1)
