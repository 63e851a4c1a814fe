"""`quadmatch match`: the keypoints of one photograph to those of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadmatch.commands.picture_options import Constraint, Detect, Model, Partial

if TYPE_CHECKING:
    from quadmatch.result import MatchResult
    from quadmatch.sides import Side

SHOWN = 20
"""Pairs that are printed."""


def match(
    image_a: Annotated[str, typer.Argument(help="A picture.")],
    image_b: Annotated[str, typer.Argument(help="The other picture.")],
    points_a: Annotated[str | None, typer.Option(help="Its keypoints: JSON, CSV or COCO.")] = None,
    points_b: Annotated[str | None, typer.Option(help="The other's keypoints.")] = None,
    out: Annotated[
        str | None, typer.Option(help="Write JSON to this file; - is the standard output.")
    ] = None,
    draw: Annotated[Path | None, typer.Option(help="Draw the match: .png, .svg or .pdf.")] = None,
    heat_map: Annotated[Path | None, typer.Option(help="Draw the assignment: .png, .svg or .pdf.")] = None,
    model: Model = "default",
    box_a: Annotated[str | None, typer.Option(help="x,y,w,h of the part to look at.")] = None,
    box_b: Annotated[str | None, typer.Option(help="x,y,w,h of the part of the other.")] = None,
    detect: Detect = None,
    partial: Partial = None,
    constraint: Constraint = True,
    edges: Annotated[bool, typer.Option(help="Draw the edges of the graphs.")] = True,
) -> None:
    """Match keypoints of two pictures; coordinates in and out are pixels of the upright pictures."""
    from quadmatch.ahead import load_ahead
    from quadmatch.figures import check_format
    from quadmatch.matches import Settings, describe_match, dump
    from quadmatch.sides import load_side, parse_box

    for path in (draw, heat_map):
        if path is not None:
            check_format(path)
    _spare((image_a, image_b, points_a, points_b), (None if out == "-" else out, draw, heat_map))
    settings = Settings(model, partial, constraint, detect)
    a = load_side(image_a, points_a, parse_box(box_a, "--box-a"), count=detect, name="image_a")
    b = load_side(image_b, points_b, parse_box(box_b, "--box-b"), count=detect, name="image_b")
    for line in (*a.warnings, *b.warnings):
        typer.echo(f"warning: {line}", err=True)
    from quadmatch.shipped import load

    load_ahead()
    matcher = load(model)
    subjects = matcher.prepare([a.request("image_a"), b.request("image_b")])
    result = matcher.match_subjects(
        subjects, [0], [1], partial=settings.is_partial(a, b), constraint=constraint
    )[0]
    settings = replace(settings, precision=str(matcher.features.precision))
    content = describe_match(result, a, b, settings)
    if out == "-":
        typer.echo(dump(content), nl=False)
    elif out is not None:
        from quadmatch.files import write_file

        write_file(out, dump(content).encode(errors="backslashreplace"))
    else:
        typer.echo(summarise(content))
    _draw(result, a, b, draw, heat_map, edges)
    for written in (None if out == "-" else out, draw, heat_map):
        if written is not None:
            typer.echo(f"written to {written}", err=True)


def _spare(given: Sequence[str | None], wanted: Sequence[str | Path | None]) -> None:
    """Refuse to write over what is read."""
    inputs = {Path(path).resolve() for path in given if path is not None}
    for path in wanted:
        if path is not None and Path(path).resolve() in inputs:
            raise ValueError(f"{path} is one of the inputs: it is not written over; name another file")


def _draw(
    result: MatchResult, a: Side, b: Side, path: Path | None, heat_map: Path | None, edges: bool
) -> None:
    if path is None and heat_map is None:
        return
    from quadmatch.figures import draw_assignment, draw_match

    if path is not None:
        points = a.keypoints.points, b.keypoints.points
        draw_match(result, *points, image_a=a.pixels, image_b=b.pixels, edges=edges, path=path)
    if heat_map is not None:
        draw_assignment(result, path=heat_map)


def summarise(content: dict[str, Any]) -> str:
    """The match in words: how many, the surest pairs, and who is left."""
    counts = [sum(point is not None for point in content[f"points_{side}"]) for side in "ab"]
    pairs, scores, names = content["pairs"], content["scores"], [content["names_a"], content["names_b"]]
    lines = [
        f"{len(pairs)} pairs of {counts[0]} keypoints in {content['image_a']} "
        f"and {counts[1]} in {content['image_b']} (model {content['model']})"
    ]
    order = sorted(range(len(pairs)), key=lambda place: -scores[place])[:SHOWN]
    for place in order:
        x, y, other_x, other_y = content["coordinates"][place]
        (i, j), labels = pairs[place], ""
        if names[0] and names[1]:
            labels = f"  {names[0][i]} – {names[1][j]}"
        lines.append(
            f"{i:5d} → {j:<5d} score {scores[place]:.2f}   "
            f"({x:.1f}, {y:.1f}) → ({other_x:.1f}, {other_y:.1f}){labels}"
        )
    if len(pairs) > SHOWN:
        lines.append(f"  … and {len(pairs) - SHOWN} more; --out matches.json writes all")
    for side in "ab":
        if alone := content[f"unmatched_{side}"]:
            shown = ", ".join(str(index) for index in alone[:SHOWN])
            lines.append(f"unmatched in image {side}: {shown}{', …' if len(alone) > SHOWN else ''}")
    return "\n".join(lines)
