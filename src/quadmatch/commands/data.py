"""`quadmatch data`: bring data sets here, and say what is there of them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from quadmatch.commands.groups import Command, Commands
from quadmatch.commands.printing import AsJson, print_json

if TYPE_CHECKING:
    from quadmatch.datasets.survey import SplitSurvey

app = typer.Typer(cls=Commands, help="Prepare data sets from their official archives, and check what is there.")

Name = Annotated[str, typer.Argument(help="willow, pascal-voc, folder or photo-warps")]
Root = Annotated[
    Optional[Path],  # noqa: UP045  typer reads the annotation at run time
    typer.Option(help="Folder of data sets; $QUADMATCH_DATA or ~/.cache/quadmatch/data if left out"),
]


@app.command(cls=Command)
def prepare(
    name: Name,
    mirror: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            envvar="QUADMATCH_MIRROR",
            help="Folder in which archives are looked up by their official names, at any depth",
        ),
    ] = None,
    root: Root = None,
    download: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option(
            "--download/--no-download", help="Fetch what is not in the mirror; by default only without a mirror"
        ),
    ] = None,
) -> None:
    """Find or download the official archives, unpack them safely, report what they hold."""
    from quadmatch.datasets.archives import default_root
    from quadmatch.datasets.archives import prepare as prepare_archives
    from quadmatch.datasets.sources import ARCHIVES

    if name not in ARCHIVES:
        typer.echo(f"{name} is not made of archives; {', '.join(ARCHIVES)} are", err=True)
        raise typer.Exit(2)
    try:
        result = prepare_archives(name, mirror=mirror, root=root, download=download, report=_report)
    except (OSError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    for message in result.messages:
        typer.echo(message)
    for message in result.missing:
        typer.echo(f"missing: {message}", err=True)
    if not result.folders:
        raise typer.Exit(1)
    typer.echo(f"in {(root or default_root()) / name}")
    check(name, root)


@app.command(cls=Command)
def check(
    name: Name,
    root: Root = None,
    pictures: Annotated[bool, typer.Option(help="Decode every picture to find broken ones")] = False,
    json: AsJson = False,
) -> None:
    """Count objects of each class and split, and name what is missing; exit code 1 if nothing is usable."""
    from rich.console import Console

    from quadmatch.datasets import DATASETS
    from quadmatch.datasets.survey import compare, survey
    from quadmatch.drawing.tables import draw_table

    if name not in DATASETS:
        typer.echo(f"there is no data set {name}; there are {', '.join(DATASETS)}", err=True)
        raise typer.Exit(2)
    surveys = survey(name, root, pictures=pictures)
    if json:
        print_json([asdict(one) for one in surveys])
    elif any(one.objects for one in surveys):
        Console().print(draw_table(list_lines(surveys), totals=1))
    _echo_problems(surveys)
    for remark in compare(name, surveys):
        typer.echo(remark, err=True)
    if not any(one.objects for one in surveys):
        raise typer.Exit(1)


def _echo_problems(surveys: list[SplitSurvey], most: int = 10) -> None:
    """Each problem once, after the splits that have it."""
    splits: dict[str, list[str]] = {}
    for one in surveys:
        for problem in one.problems:
            splits.setdefault(problem, []).append(one.split)
    for problem, having in list(splits.items())[:most]:
        typer.echo(f"{', '.join(having)}: {problem}", err=True)
    if len(splits) > most:
        typer.echo(f"and {len(splits) - most} more", err=True)


def list_lines(surveys: list[SplitSurvey]) -> list[list[str]]:
    """Objects of each category in each split, and keypoints of each category, as text; the sum last."""
    categories = sorted({category for one in surveys for category in one.objects})
    lines = [["", *(one.split for one in surveys), "keypoints"]]
    for title, members in [*((category, [category]) for category in categories), ("all", categories)]:
        counts = [sum(one.objects.get(category, 0) for category in members) for one in surveys]
        points = sum(one.keypoints.get(category, 0) for one in surveys for category in members)
        lines.append([title, *(str(count) for count in counts), str(points)])
    return lines


def _report(message: str) -> None:
    typer.echo(message, err=True)
