"""`quadmatch demo`: see what the constraint does, in seconds and without any data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Of the random points.")] = 0,
) -> None:
    """Match two graphs of noisy points with and without the quadratic constraint, and draw them."""
    from quadmatch.demo import show_graphs

    show_graphs(out, seed, say=typer.echo)
