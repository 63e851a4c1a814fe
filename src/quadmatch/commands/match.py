"""`quadmatch match`: the keypoints of one photograph to those of another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadmatch.commands.picture_options import (
    BoxA,
    BoxB,
    Constraint,
    Detect,
    Model,
    Orientation,
    Partial,
    name_keypoints,
    spare_inputs,
)
from quadmatch.commands.printing import Quiet, show_step

if TYPE_CHECKING:
    from quadmatch.datasets.picture import Picture
    from quadmatch.result import MatchResult

SHOWN = 20
"""Pairs that are printed."""


def match(
    image_a: Annotated[str, typer.Argument(help="A picture.")],
    image_b: Annotated[str, typer.Argument(help="The other picture.")],
    points_a: Annotated[str | None, typer.Option(help="Its keypoints: JSON, CSV, TPS, labelme, CVAT or COCO.")] = None,
    points_b: Annotated[str | None, typer.Option(help="The other's keypoints.")] = None,
    out: Annotated[str | None, typer.Option(help="Write JSON to this file; - is the standard output.")] = None,
    draw: Annotated[Path | None, typer.Option(help="Draw the match: .png, .svg or .pdf.")] = None,
    heat_map: Annotated[Path | None, typer.Option(help="Draw the assignment: .png, .svg or .pdf.")] = None,
    model: Model = "default",
    box_a: BoxA = None,
    box_b: BoxB = None,
    detect: Detect = None,
    partial: Partial = None,
    constraint: Constraint = True,
    orientation: Orientation = "0",
    edges: Annotated[bool, typer.Option(help="Draw the edges of the graphs.")] = True,
    quiet: Quiet = False,
) -> None:
    """Match keypoints of two pictures; coordinates in and out are pixels of the upright pictures."""
    from quadmatch.datasets.spans import compare_spans
    from quadmatch.datasets.turning import list_orientations
    from quadmatch.drawing.canvas import check_format
    from quadmatch.files import check_target, write_file
    from quadmatch.models.load import find_model, load
    from quadmatch.own_images.loading import load_picture

    for path in (draw, heat_map):
        if path is not None:
            check_format(path)
    written = [path for path in (None if out == "-" else out, draw, heat_map) if path is not None]
    for target in written:
        check_target(target)
    spare_inputs((image_a, image_b, points_a, points_b), written)
    find_model(model)
    list_orientations(orientation)
    a = load_picture(image_a, points_a, box_a, count=detect, name="image_a")
    b = load_picture(image_b, points_b, box_b, count=detect, name="image_b")
    doubt = compare_spans(a, b)
    for line in (*a.warnings, *b.warnings, *([doubt] if doubt else [])):
        typer.echo(f"warning: {line}", err=True)
    with show_step(quiet) as say:
        say("importing PyTorch")  # Only now: whatever is wrong with the words above is said at once.
        from quadmatch.own_images.answer import Settings, describe_match, dump
        from quadmatch.own_images.warm_up import load_ahead

        load_ahead()
        say(f"loading the model {model}")
        matcher, settings = load(model), Settings(model, partial, constraint, detect, orientation)
        say("computing the features of both pictures, and matching")
        free = settings.is_partial(a, b)
        result = matcher.match_pictures([a, b], [0], [1], partial=free, constraint=constraint, orientation=orientation)[
            0
        ]
    settings = replace(settings, precision=str(matcher.features.precision))
    content = describe_match(result, a, b, settings)
    if out == "-":
        typer.echo(dump(content), nl=False)
    elif out is not None:
        write_file(out, dump(content).encode(errors="backslashreplace"))
    else:
        typer.echo(summarise(content))
    _draw(result, a, b, draw, heat_map, edges)
    if out is not None and not quiet:
        typer.echo(count_pairs(content), err=True)
    for target in written if not quiet else ():
        typer.echo(f"written to {target}", err=True)


def _draw(result: MatchResult, a: Picture, b: Picture, path: Path | None, heat_map: Path | None, edges: bool) -> None:
    if path is None and heat_map is None:
        return
    from quadmatch.drawing.match import draw_match
    from quadmatch.drawing.matrices import draw_assignment

    names: dict[str, Any] = {"names_a": name_keypoints(a.keypoints), "names_b": name_keypoints(b.keypoints)}
    if path is not None:
        points = a.keypoints.points, b.keypoints.points
        draw_match(result, *points, image_a=a.image, image_b=b.image, edges=edges, **names, path=path)
    if heat_map is not None:
        draw_assignment(result, **names, path=heat_map)


def count_pairs(content: dict[str, Any]) -> str:
    """How many keypoints were matched, of how many."""
    counts = [sum(point is not None for point in content[f"points_{side}"]) for side in "ab"]
    turned = content.get("orientation", "0")
    return (
        f"{len(content['pairs'])} pairs of {counts[0]} keypoints in {content['image_a']} "
        f"and {counts[1]} in {content['image_b']} (model {content['model']}"
        f"{'' if turned == '0' else f', orientation {turned}'})"
    )


def summarise(content: dict[str, Any]) -> str:
    """The match in words: how many, the surest pairs, and who is left."""
    pairs, scores, names = content["pairs"], content["scores"], [content["names_a"], content["names_b"]]
    lines = [count_pairs(content)]
    order = sorted(range(len(pairs)), key=lambda place: -scores[place])[:SHOWN]
    for place in order:
        x, y, other_x, other_y = content["coordinates"][place]
        (i, j), labels = pairs[place], ""
        if names[0] and names[1]:
            labels = f"  {names[0][i]} – {names[1][j]}"
        lines.append(
            f"{i:5d} → {j:<5d} score {scores[place]:.2f}   ({x:.1f}, {y:.1f}) → ({other_x:.1f}, {other_y:.1f}){labels}"
        )
    if len(pairs) > SHOWN:
        lines.append(f"  … and {len(pairs) - SHOWN} more; --out matches.json writes all")
    for side in "ab":
        if alone := content[f"unmatched_{side}"]:
            shown = ", ".join(str(index) for index in alone[:SHOWN])
            lines.append(f"unmatched in image {side}: {shown}{', …' if len(alone) > SHOWN else ''}")
    return "\n".join(lines)
