"""Training: a pure function of the experiment, which goes on after a kill as if there had been none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from quadmatch.checkpoints import load_into
from quadmatch.datasets.mirroring import add_mirrored
from quadmatch.experiment import Experiment, build_matcher
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.precision import choose_precision
from quadmatch.runs import Run, count_cores, create_run, locked, read_run, settle_precision, write_run
from quadmatch.sampling import build_sampler, load_split
from quadmatch.shipped import load
from quadmatch.trainer import Progress, Reduce, Trainer
from quadmatch.training_log import Say, TrainingLog, measure_memory


def fit(
    experiment: Experiment,
    folder: str | Path,
    *,
    rank: int = 0,
    world_size: int = 1,
    reduce: Reduce | None = None,
    say: Say = print,
    board: bool = True,
) -> Progress:
    """Train an experiment in a new folder; the result is a function of the experiment, bit for bit.

    Of several processes, each is given its `rank`, so that it draws its share of the batches, and `reduce`,
    which averages gradients over all of them. `say` hears what happens; `board` switches TensorBoard.
    """
    precision = choose_precision(experiment.features.precision)
    say(precision.describe())
    threads = experiment.training.threads or count_cores()
    run = create_run(Path(folder), experiment, str(precision), threads)
    return _train(run, rank, world_size, reduce, say, board)


def resume(
    folder: str | Path,
    changes: Iterable[str] = (),
    *,
    rank: int = 0,
    world_size: int = 1,
    reduce: Reduce | None = None,
    say: Say = print,
    board: bool = True,
) -> Progress:
    """Go on with a run from its last checkpoint; `changes` may concern the machine only."""
    run = read_run(Path(folder), changes)
    precision = settle_precision(run.precision, run.experiment.features.precision, say)
    threads = run.experiment.training.threads or run.threads
    if threads > count_cores():
        say(f"the run uses {threads} threads, more than the {count_cores()} cores here: it goes on, slowly")
    run = replace(run, precision=str(precision), threads=threads)
    write_run(run)
    return _train(run, rank, world_size, reduce, say, board)


def build_trainer(run: Run, say: Say = print) -> Trainer:
    """Everything that a run needs, with initial parameters; what its images give is computed or found."""
    experiment = run.experiment
    matcher = build_matcher(experiment, run.precision)
    if experiment.training.start is not None:
        start = load(experiment.training.start, precision=run.precision)
        load_into(matcher, start.state_dict(), experiment.training.start)
    matcher.to(experiment.training.device)
    assert isinstance(matcher.features, FeatureExtractor)
    annotations = load_split(experiment.data, experiment.data.split)
    say(f"{experiment.data.name}, split {experiment.data.split}: {len(annotations)} objects")
    if experiment.training.flip:
        annotations = add_mirrored(annotations)
    began = perf_counter()

    def progress(done: int, total: int) -> None:
        if done == total or done % 512 < 8:
            say(f"features of {done} of {total} objects, {perf_counter() - began:.0f} s")

    sampler = build_sampler(experiment, matcher.features, annotations, progress)
    needed = experiment.training.validate_every > 0
    validation = load_split(experiment.data, experiment.data.validation) if needed else []
    return Trainer(experiment, matcher, sampler, validation)


def _train(run: Run, rank: int, world_size: int, reduce: Reduce | None, say: Say, board: bool) -> Progress:
    with locked(run.folder), reproducible(run.threads):
        trainer = build_trainer(run, say)
        progress = trainer.load(run)
        if progress.finished:
            say(f"{run.folder} is finished: {progress.step} steps")
            return progress
        with TrainingLog(run.folder, progress.step, run.experiment.training.steps, say, board) as log:
            clock = Clock(progress.seconds)
            while not progress.finished:
                began = perf_counter()
                values = trainer.take_step(progress.step, rank, world_size, reduce)
                values["images_per_second"] = values.pop("objects") / (perf_counter() - began)
                progress.step += 1
                _look(trainer, progress, values, log, clock)
                progress.seconds = clock.total()
                if rank == 0 and _is_due(trainer, progress, clock):
                    trainer.save(run, progress)
                    clock.saved = perf_counter()
    return progress


class Clock:
    """Seconds of a run, over all its processes."""

    def __init__(self, before: float) -> None:
        self.began = perf_counter() - before
        self.saved = perf_counter()

    def total(self) -> float:
        """Seconds so far."""
        return perf_counter() - self.began


def _look(
    trainer: Trainer, progress: Progress, values: dict[str, float], log: TrainingLog, clock: Clock
) -> None:
    """Write the log, measure on the validation split, and decide whether training ends."""
    training, step = trainer.experiment.training, progress.step
    log.advance(step, values)
    if step % training.log_every == 0:
        log.write(step, "train", values | {"seconds": clock.total(), "memory": measure_memory()})
    last = step == training.steps
    if training.validate_every and (last or step % training.validate_every == 0):
        began = perf_counter()
        measured = trainer.measure()
        progress.note(measured["accuracy"])
        log.write(step, "validation", measured | {"seconds": perf_counter() - began})
    progress.finished = last or (training.patience is not None and progress.stale >= training.patience)


def _is_due(trainer: Trainer, progress: Progress, clock: Clock) -> bool:
    """Whether now is the moment for a checkpoint."""
    training = trainer.experiment.training
    best = progress.best is not None and progress.best["step"] == progress.step
    steps = training.checkpoint_steps is not None and progress.step % training.checkpoint_steps == 0
    passed = perf_counter() - clock.saved
    seconds = training.checkpoint_seconds is not None and passed >= training.checkpoint_seconds
    return progress.finished or best or steps or seconds


@contextmanager
def reproducible(threads: int) -> Iterator[None]:
    """Within: that many threads, and sums in a fixed order; afterwards all as before, random numbers too."""
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
