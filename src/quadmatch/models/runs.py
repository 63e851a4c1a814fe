"""The folder of a run: what it is a function of, and the machine's part in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quadmatch.experiments.reading import Experiment, ExperimentError, check_experiment
from quadmatch.files import take_lock, write_json
from quadmatch.machine import describe_origin
from quadmatch.models.records import read_record

if TYPE_CHECKING:
    from quadmatch.features.precision import Precision

RECORD = "run.json"
FORMAT = 1
KINDS = {"experiment": dict, "precision": str, "threads": int, "origin": dict}
MACHINE = (
    "data.root",
    "features.cache",
    "features.weights",
    "features.precision",
    "training.threads",
    "training.checkpoint_seconds",
    "training.checkpoint_steps",
    "training.log_every",
    "training.stop",
)
"""What may change when a run is resumed: it says where, how fast and how far, not what."""


@dataclass(frozen=True)
class Run:
    """A training run and its folder."""

    folder: Path
    experiment: Experiment
    precision: str
    """Number format, memory format and threads of the convolutions."""
    threads: int
    """Processor threads of everything else; sums depend on them in the last digit."""
    origin: Mapping[str, str]
    """Date, command, hardware, commit and versions of the process that began it, and what it began with, as a hash."""
    world_size: int = 1
    """Processes that train it together; dropout and the order of sums depend on them."""


def create_run(folder: Path, experiment: Experiment, precision: str, threads: int, world_size: int = 1) -> Run:
    """A new run; a folder that holds anything is refused, but for what a kill left of a run's first file."""
    if folder.exists() and (not folder.is_dir() or any(one.suffix != ".partial" for one in folder.iterdir())):
        raise FileExistsError(f"{folder} exists: resume the run in it, or choose another folder")
    origin = describe_origin()
    if experiment.training.start:
        from quadmatch.models.load import identify_parameters

        origin |= {"start_sha256": " ".join(identify_parameters(start) for start in experiment.training.start)}
    run = Run(folder, experiment, precision, threads, origin, world_size)
    folder.mkdir(parents=True, exist_ok=True)
    write_run(run)
    return run


def write_run(run: Run) -> None:
    """Keep what a run is, readable; the file is replaced at once."""
    content = {
        "format": FORMAT,
        "experiment": run.experiment.model_dump(mode="json"),
        "precision": run.precision,
        "threads": run.threads,
        "world_size": run.world_size,
        "origin": dict(run.origin),
    }
    write_json(run.folder / RECORD, content)


def read_run(folder: Path, changes: Iterable[str] = ()) -> Run:
    """A run by its folder; `changes` may touch what depends on the machine only."""
    path = folder / RECORD
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is not the folder of a run: it has no {RECORD}")
    content = read_record(path, FORMAT, KINDS)
    changes = list(changes)
    for change in changes:
        if change.partition("=")[0].strip() not in MACHINE:
            allowed = ", ".join(MACHINE)
            raise ExperimentError(f"--set {change!r}: a resumed run may change only {allowed}")
    experiment = check_experiment(content["experiment"], str(path), changes)
    world_size = content.get("world_size", 1)  # Runs of before have none: one process was all there was.
    return Run(folder, experiment, content["precision"], content["threads"], content["origin"], world_size)


def take_over(run: Run, experiment: Experiment) -> Run:
    """The run with what an experiment says of the machine; one that differs in more is another experiment."""
    begun, given = (_flatten(one.model_dump(mode="json")) for one in (run.experiment, experiment))
    for key in sorted(begun.keys() | given.keys()):
        if begun.get(key) != given.get(key) and key not in MACHINE:
            raise ExperimentError(
                f"{run.folder} holds a run of another experiment: {key} is {begun.get(key)!r} in it and "
                f"{given.get(key)!r} here; choose another folder"
            )
    return replace(run, experiment=experiment)


def _flatten(table: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    """Values of nested tables by their whole keys, as in `training.steps`."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flatten(value, f"{start}{key}.") if isinstance(value, dict) else {f"{start}{key}": value}
    return flat


def settle_precision(recorded: str, wanted: str, say: Callable[[str], None]) -> Precision:
    """The number format that a run goes on in: that of its beginning, unless it is slow or missing here."""
    from quadmatch.features.precision import choose_precision, parse_precision

    begun, here = parse_precision(recorded, origin="recorded in the run"), choose_precision(wanted)
    if begun.number == here.number:
        return begun
    if begun.number == "float32":
        say(f"the run was begun in float32 and goes on in it, although {here.number} is faster here")
        return begun
    say(
        f"the run was begun in {begun.number}, which is slow or missing on this machine: it goes on in "
        f"{here.number}, and will not be bit-identical to one that stayed where it was"
    )
    return here


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Within: no other process trains in this folder; the system lifts the lock when a process dies."""
    with (folder / "lock").open("w") as file:
        take_lock(file, f"another process trains in {folder}")
        yield
