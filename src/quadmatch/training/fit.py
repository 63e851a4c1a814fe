"""Training: a pure function of the experiment, which goes on after a kill as if there had been none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from quadmatch.experiments.build import build_matcher, load_split
from quadmatch.experiments.reading import Experiment
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.precision import choose_precision
from quadmatch.machine import count_cores
from quadmatch.matcher import Matcher
from quadmatch.models.checkpoints import load_into
from quadmatch.models.load import load
from quadmatch.models.runs import RECORD, Run, create_run, locked, read_run, settle_precision, take_over, write_run
from quadmatch.training.log import Say
from quadmatch.training.loop import Progress, train
from quadmatch.training.optimisation import BACKBONE
from quadmatch.training.sampling import build_sampler, extend_objects
from quadmatch.training.team import Alone, Team, TeamError, share
from quadmatch.training.trainer import Trainer

EACH = 512
"""Objects between two lines about features that are computed."""


def fit(
    experiment: Experiment,
    folder: str | Path,
    *,
    team: Team | None = None,
    again: bool = False,
    say: Say = print,
    board: bool = True,
) -> Progress:
    """Train an experiment in a new folder; the result is a function of the experiment, bit for bit.

    `say` hears what happens; `board` switches TensorBoard. Several processes that train together call this
    with the same experiment and folder, and each with its `team`: see `quadmatch.training.team`. With `again`,
    a run of the same experiment that is in the folder already goes on, as after `resume`.
    """
    team = team or Alone()

    def begin() -> None:
        if again and (Path(folder) / RECORD).is_file():
            return _go_on(take_over(read_run(Path(folder)), experiment), team, say)
        precision = choose_precision(experiment.features.precision)
        say(precision.describe())
        threads = experiment.training.threads or count_cores()
        create_run(Path(folder), experiment, str(precision), threads, team.world_size)

    return _train(begin, Path(folder), team, say, board)


def resume(
    folder: str | Path, changes: Iterable[str] = (), *, team: Team | None = None, say: Say = print, board: bool = True
) -> Progress:
    """Go on with a run from its last checkpoint; `changes` may concern the machine only."""
    team = team or Alone()

    return _train(lambda: _go_on(read_run(Path(folder), changes), team, say), Path(folder), team, say, board)


def _go_on(run: Run, team: Team, say: Say) -> None:
    """Prepare a run for this machine and so many processes; what that changes is said."""
    precision = settle_precision(run.precision, run.experiment.features.precision, say)
    threads = run.experiment.training.threads or run.threads
    if run.world_size != team.world_size:
        threads = run.experiment.training.threads or count_cores()
        say(
            f"the number of processes changes from {run.world_size} to {team.world_size}, threads of each: {threads}. "
            "The batches stay, but dropout is drawn anew and sums are taken in another order, so that the run will "
            f"not be bit-identical to one that stayed with {run.world_size}"
        )
    if threads > count_cores():
        say(f"the run uses {threads} threads, more than the {count_cores()} cores here: it goes on, slowly")
    with locked(run.folder):
        write_run(replace(run, precision=str(precision), threads=threads, world_size=team.world_size))


def _train(prepare: Callable[[], None], folder: Path, team: Team, say: Say, board: bool) -> Progress:
    """Rank 0 prepares the folder and locks it; then all ranks train the run that is recorded in it."""
    with ExitStack() as stack:

        def lead() -> None:
            prepare()
            stack.enter_context(locked(folder))

        share(team, lead)
        if team.rank > 0 and not folder.is_dir():
            raise TeamError(f"rank {team.rank} does not see {folder}, which rank 0 has made: all ranks need one folder")
        run = read_run(folder)
        stack.enter_context(reproducible(run.threads))
        if team.rank > 0:
            say, board = _say_nothing, False
        return train(build_trainer(run, say, team), run, say, board)


def build_trainer(run: Run, say: Say = print, team: Team | None = None) -> Trainer:
    """Everything that a run needs, with initial parameters; what its images give is computed or found."""
    experiment, team = run.experiment, team or Alone()
    matcher = build_matcher(experiment, run.precision)
    begin_with(matcher, experiment.training.start, run.precision)
    matcher.to(experiment.training.device)
    assert isinstance(matcher.features, FeatureExtractor)
    data, training = experiment.data, experiment.training
    annotations = load_split(data, data.split)
    say(f"{data.name}, split {data.split}: {len(annotations)} objects")
    annotations = extend_objects(annotations, training, data.size)
    began, told = perf_counter(), -EACH

    def progress(done: int, total: int) -> None:
        nonlocal told
        if done == total or done >= told + EACH:
            told = done
            say(f"features of {done} of {total} objects, {perf_counter() - began:.0f} s")

    sampler = build_sampler(experiment, matcher.features, annotations, team, progress)
    needed = experiment.training.validate_every > 0
    validation = load_split(experiment.data, experiment.data.validation) if needed else []
    return Trainer(experiment, matcher, sampler, validation, team)


def begin_with(matcher: Matcher, starts: Sequence[str], precision: str) -> None:
    """Give a matcher the parameters of a run or model, or the mean of those of several; none: it keeps its own.

    The mean of networks that began alike and then learned different things often knows both (Wortsman et al., 2022).
    What starts on frozen features may train convolutions then: those begin with their initial weights.
    """
    mean: dict[str, Tensor] = {}
    initial = {name: value.clone() for name, value in matcher.state_dict().items() if name.startswith(BACKBONE)}
    for start in starts:
        given = load(start, precision=precision).state_dict()
        untrained = not any(name.startswith(BACKBONE) for name in given)
        load_into(matcher, initial | given if untrained else given, start)
        for name, value in matcher.state_dict().items():
            mean[name] = mean.get(name, 0) + value.double() / len(starts)
    if mean:
        load_into(matcher, mean, "the mean of the parameters")


def _say_nothing(line: str) -> None:
    """For all ranks but the first."""


@contextmanager
def reproducible(threads: int) -> Iterator[None]:
    """A context with that many threads and sums in a fixed order; it restores all settings at its end."""
    before, mode = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    settings: Any = torch.utils.deterministic
    filled = settings.fill_uninitialized_memory
    torch.set_num_threads(threads)
    torch.set_deterministic_debug_mode("warn")
    settings.fill_uninitialized_memory = False  # It guards against reading what was never written, slowly.
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.set_num_threads(before)
        torch.set_deterministic_debug_mode(mode)
        settings.fill_uninitialized_memory = filled
