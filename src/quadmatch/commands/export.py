"""`quadmatch export`: from a run folder to a model that loads anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    run: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The folder of a run.")],
    name: Annotated[str, typer.Argument(help="Of the model.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("models"),
    figures: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>", exists=True, dir_okay=False, help="Results of `evaluate --json` for the model's card."
        ),
    ] = None,
    number: Annotated[str, typer.Option(help="float16 or float32.")] = "float16",
) -> None:
    """Write NAME.safetensors, with only what differs from the ImageNet weights, and its card NAME.json."""
    import json

    from quadmatch.datasets.texts import read_json
    from quadmatch.models.export import export_model

    evaluations = [read_json(path) for path in figures or ()]
    card = export_model(run, name, out, evaluations=evaluations, number=number)
    commit = json.loads(card.read_text(encoding="utf-8")).get("commit") or ""
    if commit.endswith("+changes"):
        typer.echo(f"trained from {commit}: no commit holds that code; train from a clean one to ship it", err=True)
    size = card.with_suffix(".safetensors").stat().st_size
    typer.echo(f"{card} and {card.with_suffix('.safetensors').name}, {size / 2**20:.1f} MB")
