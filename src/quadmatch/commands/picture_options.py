"""Options that the commands for people's own pictures share."""

from __future__ import annotations

from typing import Annotated

import typer

Model = Annotated[str, typer.Option(help="A model's name, file or run folder.")]
Detect = Annotated[int | None, typer.Option(min=1, help="Find so many keypoints where no file has them.")]
Partial = Annotated[
    bool | None,
    typer.Option("--partial/--all", help="Leave alone what matches nothing well [default: with --detect]."),
]
Constraint = Annotated[bool, typer.Option(help="The quadratic constraint.")]
