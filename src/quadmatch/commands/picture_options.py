"""Options that the commands for people's own pictures share."""

from __future__ import annotations

from typing import Annotated

import typer

from quadmatch.models.load import list_models

Model = Annotated[
    str,
    typer.Option(help=f"A model's name ({', '.join(list_models())}), file or run folder.", autocompletion=list_models),
]
Detect = Annotated[int | None, typer.Option(min=1, help="Find so many keypoints where no file has them.")]
Partial = Annotated[
    bool | None,
    typer.Option(
        "--partial/--all",
        help="Leave keypoints alone that match nothing well, or match all.",
        show_default="partial where keypoints were detected, else all",
    ),
]
Constraint = Annotated[bool, typer.Option(help="The quadratic constraint.")]
