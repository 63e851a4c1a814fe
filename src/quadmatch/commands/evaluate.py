"""`quadmatch evaluate`: accuracy and F1 of a model on a data set."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from quadmatch.commands.printing import Json, Quiet, check_json, write_result


def evaluate(
    model: Annotated[str, typer.Argument(help="A run folder, an exported model, or a model's name.")],
    dataset: Annotated[str | None, typer.Option(help="Its name; else what the model was trained on.")] = None,
    root: Annotated[Path | None, typer.Option(exists=True, help="Folder of the data set, unpacked or packed.")] = None,
    mirror: Annotated[Path | None, typer.Option(exists=True, help="Folder that holds its archives, by name.")] = None,
    split: Annotated[str, typer.Option(help="train, validation, trainval, test or fold-1-of-4.")] = "test",
    protocol: Annotated[str, typer.Option(help="intersection, inclusion or unfiltered.")] = "intersection",
    pairs: Annotated[int, typer.Option(min=0, help="Of each class; 0: every pair once.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the list of pairs and of outliers.")] = 0,
    outliers: Annotated[int, typer.Option(min=0, help="Points that match nothing, added to each.")] = 0,
    outlier_kind: Annotated[str, typer.Option(help="normal or uniform.")] = "normal",
    constraint: Annotated[bool, typer.Option(help="The quadratic constraint, learned and discrete.")] = True,
    partial: Annotated[bool, typer.Option(help="Leave alone what matches nothing well.")] = False,
    option: Annotated[
        list[str] | None, typer.Option(metavar="<key=value>", help="Of the data set, as in outside=drop.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="Of the convolutions, as in float32.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder in which activations are kept.")] = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Match pairs of a data set; print the accuracy of each class, or precision, recall and F1 if they differ."""
    from rich.console import Console
    from rich.progress import Progress

    from quadmatch.models.load import find_model

    check_json(json)
    find_model(model)
    from quadmatch.evaluation.report import Conditions
    from quadmatch.evaluation.trial import choose_data, try_model

    data = choose_data(model, dataset, mirror or root, parse_options(option or ()))
    conditions = Conditions(split, protocol, pairs or None, seed, outliers, outlier_kind, constraint, partial)
    with Progress(console=Console(stderr=True, quiet=quiet), transient=True) as bar:
        task = bar.add_task("features of objects", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        result = try_model(model, data, conditions, precision=precision, cache=cache, progress=progress)
    write_result(json, result.to_json(), lambda: Console().print(result.table()))


def parse_options(words: Sequence[str]) -> dict[str, Any]:
    """`["outside=drop", "crop=true"]` as keywords: a value is TOML, or else text as it stands."""
    options: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f"--option {word!r}: expected something like outside=drop")
        try:
            options[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            options[key] = text
    return options
