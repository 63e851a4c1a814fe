"""`quadmatch transfer`: the landmarks of one photograph found in another that has none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadmatch.commands.picture_options import BoxA, BoxB, Constraint, Model, name_keypoints, spare_inputs
from quadmatch.commands.printing import Quiet, show_step

if TYPE_CHECKING:
    from quadmatch.datasets.picture import Picture
    from quadmatch.own_images.transfer import Transferred


def transfer(
    image_a: Annotated[str, typer.Argument(help="A picture with landmarks.")],
    points_a: Annotated[str, typer.Argument(help="Its landmarks: JSON, CSV, TPS, labelme, CVAT or COCO.")],
    image_b: Annotated[str, typer.Argument(help="The picture without.")],
    out: Annotated[Path | None, typer.Option(help="Write its landmarks: .csv, .json or .tps.")] = None,
    draw: Annotated[Path | None, typer.Option(help="Draw both pictures: .png, .svg or .pdf.")] = None,
    model: Model = "default",
    box_a: BoxA = None,
    box_b: BoxB = None,
    constraint: Constraint = True,
    quiet: Quiet = False,
) -> None:
    """Find the landmarks of one picture in another; what is not sure is marked."""
    from quadmatch.datasets.keypoint_writing import check_form
    from quadmatch.drawing.canvas import check_format
    from quadmatch.files import check_target
    from quadmatch.models.load import find_model, load
    from quadmatch.own_images.loading import load_bare, load_picture

    if out is not None:
        check_form(out)
    if draw is not None:
        check_format(draw)
    written = [path for path in (out, draw) if path is not None]
    for target in written:
        check_target(target)
    spare_inputs((image_a, points_a, image_b), written)
    find_model(model)
    a, b = load_picture(image_a, points_a, box_a, name="image_a"), load_bare(image_b, box_b, name="image_b")
    for line in a.warnings:
        typer.echo(f"warning: {line}", err=True)
    with show_step(quiet) as say:
        say("importing PyTorch")  # Only now: whatever is wrong with the words above is said at once.
        from quadmatch.own_images.transfer import transfer_landmarks

        say(f"loading the model {model}")
        matcher = load(model)
        say("looking for the landmarks")
        found = transfer_landmarks(matcher, a, b, constraint=constraint)
    _write(found, a, b, out, draw)
    if out is None:
        typer.echo(summarise(found, b))
    elif not quiet:
        typer.echo(summarise(found, b).partition("\n")[0], err=True)
    for target in written if not quiet else ():
        typer.echo(f"written to {target}", err=True)


def summarise(found: Transferred, b: Picture) -> str:
    """How many landmarks, and where each is."""
    lines = [count_landmarks(found, b.file)]
    names = name_keypoints(found.keypoints)
    for name, (x, y), score, doubt in zip(names, found.points, found.scores, found.unsure):
        lines.append(f"{name:>12}   ({x:.1f}, {y:.1f})   score {score:.2f}{'   unsure' if doubt else ''}")
    return "\n".join(lines)


def count_landmarks(found: Transferred, file: str) -> str:
    """How many landmarks there are, and how many of them should be looked at."""
    count, unsure = len(found.scores), int(found.unsure.sum())
    return f"{count} landmark{'s' * (count != 1)} in {file}" + (f", {unsure} of them unsure" if unsure else "")


def _write(found: Transferred, a: Picture, b: Picture, out: Path | None, draw: Path | None) -> None:
    if out is not None:
        from quadmatch.datasets.keypoint_writing import write_keypoints
        from quadmatch.files import write_file

        assert b.size is not None
        scores = found.scores.round(4).tolist()
        text = write_keypoints(found.keypoints, out.suffix, Path(b.file).name, b.size[1], scores)
        write_file(out, text.encode(errors="backslashreplace"))
    if draw is not None:
        from quadmatch.drawing.match import draw_match

        names = name_keypoints(a.keypoints)
        marked = [f"{name} ?" if doubt else name for name, doubt in zip(names, found.unsure)]
        points = a.keypoints.points, found.points
        pictures = {"image_a": a.image, "image_b": b.image}
        title = count_landmarks(found, Path(b.file).name)
        draw_match(found.to_match(), *points, **pictures, names_a=names, names_b=marked, title=title, path=draw)
