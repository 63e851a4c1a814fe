"""`quadmatch train`: train an experiment, or go on with a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quadmatch.commands.printing import Quiet, choose_say
from quadmatch.experiments.shipped import list_experiments, locate_experiment


def train(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="A TOML file, or the name of a shipped experiment (`quadmatch list experiments`).",
            autocompletion=list_experiments,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="<key=value>", help="As in training.seed=3; repeatable.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="New folder of the run; runs/NAME if left out. A launched run goes on in it.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Folder of a run to go on with.")
    ] = None,
    root: Annotated[Path | None, typer.Option(exists=True, help="Folder of the data set, unpacked or packed.")] = None,
    mirror: Annotated[Path | None, typer.Option(exists=True, help="Folder that holds its archives, by name.")] = None,
    board: Annotated[bool, typer.Option(help="Write for TensorBoard, where it is installed.")] = True,
    processes: Annotated[int, typer.Option(min=1, help="Processes on this machine that share each batch.")] = 1,
    wait: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for processes launched elsewhere.")] = 60.0,
    quiet: Quiet = False,
) -> None:
    """Train an experiment in a new folder, or go on with a run; both end with the same bits."""
    if experiment is not None:
        locate_experiment(Path(experiment))
    from quadmatch.launch.group import is_launched

    if resume is not None and (experiment is not None or out is not None):
        raise ValueError("--resume takes the experiment and the folder from the run: give neither")
    if resume is None and experiment is None:
        raise ValueError("give an experiment to train, or --resume and the folder of a run")
    folder = resume or out or Path("runs") / Path(str(experiment)).stem
    changes = list(set_ or ())
    if place := mirror or root:
        changes.append(f"data.root={place.absolute()}")
    if processes == 1:
        _train(experiment, changes, folder, board, wait, quiet)
    elif is_launched():
        raise ValueError("--processes: torchrun has started the processes already; leave it out")
    else:
        _launch(processes, experiment, changes, folder, board, quiet)


def _train(experiment: str | None, changes: list[str], folder: Path, board: bool, wait: float, quiet: bool) -> None:
    """Train as one rank, or alone; what is launched again goes on where it was."""
    from quadmatch.experiments.reading import read_experiment
    from quadmatch.launch.group import is_launched, join_group
    from quadmatch.training import fit as training

    say = choose_say(quiet)
    with join_group(wait) as team:
        if experiment is None:
            progress = training.resume(folder, changes, team=team, say=say, board=board)
        else:
            read, again = read_experiment(experiment, changes), is_launched()
            progress = training.fit(read, folder, team=team, again=again, say=say, board=board)
    if team.rank == 0:
        best = "" if progress.best is None else f", best on validation {progress.best['accuracy']:.1f}"
        typer.echo(f"{folder}: {progress.step} steps in {progress.seconds:.0f} s{best}")


def _launch(processes: int, experiment: str | None, changes: list[str], folder: Path, board: bool, quiet: bool) -> None:
    """The same command in several processes on this machine."""
    from quadmatch.launch.processes import start_processes

    words = [f"--resume={folder}"] if experiment is None else [experiment, f"--out={folder}"]
    words += [f"--set={change}" for change in changes]
    start_processes(
        processes, "quadmatch", ["train", *words, "--board" if board else "--no-board", *["--quiet"] * quiet]
    )
