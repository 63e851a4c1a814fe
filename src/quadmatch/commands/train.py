"""`quadmatch train`: train an experiment, or go on with a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train(
    experiment: Annotated[
        str | None, typer.Argument(help="A TOML file, or the name of an experiment that is shipped.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="As in training.seed=3; repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="New folder of the run; runs/NAME if left out.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Folder of a run to go on with.")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder of the data set, unpacked or packed.")] = None,
    mirror: Annotated[Path | None, typer.Option(help="Folder that holds its archives, by name.")] = None,
    board: Annotated[bool, typer.Option(help="Write for TensorBoard, where it is installed.")] = True,
) -> None:
    """Train an experiment in a new folder, or go on with a run; both end with the same bits."""
    from quadmatch import training
    from quadmatch.experiment import read_experiment

    changes = list(set_ or ())
    if place := mirror or root:
        changes.append(f"data.root={place.absolute()}")
    if resume is not None:
        if experiment is not None or out is not None:
            raise ValueError("--resume takes the experiment and the folder from the run: give neither")
        folder, progress = resume, training.resume(resume, changes, say=typer.echo, board=board)
    elif experiment is not None:
        folder = out or Path("runs") / Path(experiment).stem
        progress = training.fit(read_experiment(experiment, changes), folder, say=typer.echo, board=board)
    else:
        raise ValueError("give an experiment to train, or --resume and the folder of a run")
    best = "" if progress.best is None else f", best on validation {progress.best['accuracy']:.1f}"
    typer.echo(f"{folder}: {progress.step} steps in {progress.seconds:.0f} s{best}")
