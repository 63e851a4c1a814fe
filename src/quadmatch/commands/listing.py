"""`quadmatch list`: names that other commands take, each with one line."""

from __future__ import annotations

import inspect
from typing import Annotated, Literal

import typer

from quadmatch.commands.printing import AsJson, print_json

Kind = Literal["models", "data", "experiments", "tables", "methods"]
KINDS: dict[Kind, str] = {
    "models": "Models, for `match --model` and `evaluate`",
    "data": "Data sets, for `data`, `evaluate --dataset` and experiments",
    "experiments": "Experiments, for `train`",
    "tables": "Tables and figures, for `reproduce`",
    "methods": "Methods, for the table [head] of an experiment",
}


def list_names(
    kind: Annotated[Kind | None, typer.Argument(help="Only these; all if left out.")] = None, json: AsJson = False
) -> None:
    """List models, data sets, experiments, tables and figures, and methods."""
    found = {one: describe(one) for one in ([kind] if kind else KINDS)}
    if json:
        print_json(found)
        return
    for one, names in found.items():
        typer.echo(f"{KINDS[one]}:")
        width = max(map(len, names))
        for name, about in names.items():
            typer.echo(f"  {name:{width}}  {about}")
        typer.echo("")


def describe(kind: Kind) -> dict[str, str]:
    """All names of a kind and what each is; only methods need torch."""
    if kind == "models":
        from quadmatch.models.load import describe_models

        return describe_models()
    if kind == "data":
        from quadmatch.datasets import DATASETS

        return {name: (inspect.getdoc(loader) or "").partition("\n")[0] for name, loader in DATASETS.items()}
    if kind == "experiments":
        from quadmatch.experiments.shipped import describe_experiments

        return describe_experiments()
    if kind == "tables":
        from quadmatch.reproduce import ITEMS

        return {name: item.about for name, item in ITEMS.items()}
    from quadmatch.methods import METHODS

    return {name: method.paper for name, method in METHODS.items()}
