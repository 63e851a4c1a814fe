"""Options that the commands for people's own pictures share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadmatch.models.load import list_models

if TYPE_CHECKING:
    from quadmatch.datasets.keypoints import Keypoints

Model = Annotated[
    str,
    typer.Option(help=f"A model's name ({', '.join(list_models())}), file or run folder.", autocompletion=list_models),
]


def _check_detect(count: int | None) -> int | None:
    """Refuse more keypoints than a picture may have, before it is read."""
    if count is not None:
        from quadmatch.datasets.points import MOST

        if count > MOST:
            raise ValueError(f"--detect: a picture may have at most {MOST:,} keypoints")
    return count


Detect = Annotated[
    int | None, typer.Option(min=1, callback=_check_detect, help="Find so many keypoints where no file has them.")
]
Partial = Annotated[
    bool | None,
    typer.Option(
        "--partial/--all",
        help="Leave keypoints alone that match nothing well, or match all.",
        show_default="partial where keypoints were detected, else all",
    ),
]
Constraint = Annotated[bool, typer.Option(help="The quadratic constraint.")]
Orientation = Annotated[
    str,
    typer.Option(
        help="How the other picture is turned, in degrees clockwise: 90, 180 or 270; mirror, mirror-90, mirror-180 or "
        "mirror-270; auto tries all.",
        show_default="0, as it is",
    ),
]
BoxA = Annotated[str | None, typer.Option(help="x,y,w,h of the part to look at.")]
BoxB = Annotated[str | None, typer.Option(help="x,y,w,h of the part of the other.")]


def spare_inputs(given: Sequence[str | None], wanted: Sequence[str | Path]) -> None:
    """Refuse to write over what is read."""
    inputs = {os.path.realpath(path) for path in given if path is not None}
    for path in wanted:
        if os.path.realpath(path) in inputs:
            raise ValueError(f"{path} is one of the inputs: it is not written over; name another file")


def name_keypoints(keypoints: Keypoints) -> list[str]:
    """What the keypoints are called in drawings: as in the file, else their numbers there."""
    names = keypoints.name_all()
    return [names[index] for index in keypoints.indices]
