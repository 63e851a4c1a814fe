"""`quadmatch data`: bring data sets here, and say what is there of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from quadmatch.datasets.survey import SplitSurvey

app = typer.Typer(help="Prepare data sets from their official archives, and check what is there.")

Name = Annotated[str, typer.Argument(help="willow, pascal-voc, folder or photo-warps")]
Root = Annotated[
    Optional[Path],  # noqa: UP045  typer reads the annotation at run time
    typer.Option(help="Folder of data sets; $QUADMATCH_DATA or ~/.cache/quadmatch/data if left out"),
]


@app.command()
def prepare(
    name: Name,
    mirror: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder in which archives are looked up by their official names, at any depth"),
    ] = None,
    root: Root = None,
    download: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option(
            "--download/--no-download",
            help="Fetch what is not in the mirror; by default only without a mirror",
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


@app.command()
def check(
    name: Name,
    root: Root = None,
    pictures: Annotated[bool, typer.Option(help="Decode every picture to find broken ones")] = False,
) -> None:
    """Count objects of each class and split, and name what is missing; exit code 1 if nothing is usable."""
    from quadmatch.datasets import DATASETS
    from quadmatch.datasets.survey import compare, survey

    if name not in DATASETS:
        typer.echo(f"there is no data set {name}; there are {', '.join(DATASETS)}", err=True)
        raise typer.Exit(2)
    surveys = survey(name, root, pictures=pictures)
    if any(one.objects for one in surveys):
        typer.echo(draw_table(surveys))
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


def draw_table(surveys: list[SplitSurvey]) -> str:
    """Objects of each category in each split, and keypoints of each category, as text."""
    categories = sorted({category for one in surveys for category in one.objects})
    width = max(8, *(len(category) for category in categories))
    lines = [" ".join([" " * width, *(f"{one.split:>10}" for one in surveys), " keypoints"])]
    rows = [(category, [category]) for category in categories] + [("all", categories)]
    for title, members in rows:
        counts = [sum(one.objects.get(category, 0) for category in members) for one in surveys]
        points = sum(one.keypoints.get(category, 0) for one in surveys for category in members)
        lines.append(" ".join([f"{title:<{width}}", *(f"{count:>10}" for count in counts), f"{points:>10}"]))
    return "\n".join(lines)


def _report(message: str) -> None:
    typer.echo(message, err=True)
