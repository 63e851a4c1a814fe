"""The folder of a run: what it is a function of, and the machine's part in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quadmatch.experiment import Experiment, ExperimentError, check_experiment
from quadmatch.files import write_json
from quadmatch.provenance import describe_origin

if TYPE_CHECKING:
    from quadmatch.features.precision import Precision

RECORD = "run.json"
FORMAT = 1
MACHINE = (
    "data.root",
    "features.cache",
    "features.weights",
    "features.precision",
    "training.threads",
    "training.checkpoint_seconds",
    "training.checkpoint_steps",
    "training.log_every",
)
"""What may change when a run is resumed: it says where and how fast, not what."""


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
    """Date, command, hardware, commit and versions of the process that began it."""


def create_run(folder: Path, experiment: Experiment, precision: str, threads: int) -> Run:
    """A new run; a folder that holds anything is refused."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists: resume the run in it, or choose another folder")
    run = Run(folder, experiment, precision, threads, describe_origin())
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
        "origin": dict(run.origin),
    }
    write_json(run.folder / RECORD, content)


def read_run(folder: Path, changes: Iterable[str] = ()) -> Run:
    """A run by its folder; `changes` may touch what depends on the machine only."""
    path = folder / RECORD
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is not the folder of a run: it has no {RECORD}")
    try:
        content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if content.get("format") != FORMAT:
        raise ValueError(f"{path} has the format {content.get('format')!r}; this version reads {FORMAT}")
    changes = list(changes)
    for change in changes:
        if change.partition("=")[0].strip() not in MACHINE:
            allowed = ", ".join(MACHINE)
            raise ExperimentError(f"--set {change!r}: a resumed run may change only {allowed}")
    experiment = check_experiment(content["experiment"], str(path), changes)
    return Run(folder, experiment, content["precision"], content["threads"], content["origin"])


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
    try:
        import fcntl
    except ImportError:  # A system without such locks.
        yield
        return
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BlockingIOError(f"another process trains in {folder}") from error
        yield


def count_cores() -> int:
    """Physical cores that this process may use; `OMP_NUM_THREADS` if that is set."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # A system without affinities.
        allowed = os.cpu_count() or 1
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return allowed
    # Threads of one core have its number in common; some virtual machines do not number cores.
    blocks = [dict(_split_line(line) for line in block.splitlines()) for block in text.strip().split("\n\n")]
    cores = {(one.get("physical id"), one.get("core id", one.get("processor"))) for one in blocks}
    return max(1, min(allowed, len(cores)))


def _split_line(line: str) -> tuple[str, str]:
    key, _, value = line.partition(":")
    return key.strip(), value.strip()
