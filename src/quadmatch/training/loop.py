"""The training loop: steps, measurements, log and checkpoints of a run, of which rank 0 alone writes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from quadmatch.experiments.training_schema import TrainingSection
from quadmatch.machine import measure_peak_memory
from quadmatch.models.checkpoints import Checkpoint, list_checkpoints, load_checkpoint, load_into, save_checkpoint
from quadmatch.models.runs import Run
from quadmatch.training.log import Say, TrainingLog
from quadmatch.training.optimisation import load_optimiser, read_optimiser
from quadmatch.training.team import share
from quadmatch.training.trainer import Trainer


@dataclass
class Progress:
    """How far a run is."""

    step: int = 0
    """Steps that are done."""
    best: dict[str, int | float] | None = None
    """Step and accuracy of the best measurement on the validation split."""
    stale: int = 0
    """Measurements since then."""
    seconds: float = 0.0
    """Time that training took, over all processes that went on with the run."""
    finished: bool = False

    def note(self, measured: float) -> None:
        """Take account of a measurement on the validation split."""
        if self.best is None or measured > self.best["accuracy"]:
            self.best, self.stale = {"step": self.step, "accuracy": measured}, 0
        else:
            self.stale += 1


def train(trainer: Trainer, run: Run, say: Say, board: bool) -> Progress:
    """Take the steps that a run still needs, from its last checkpoint on."""
    progress, training = load(trainer, run), run.experiment.training
    if progress.finished:
        say(f"{run.folder} is finished: {progress.step} steps")
        return progress
    leads = trainer.team.rank == 0
    with TrainingLog(run.folder, progress.step, _find_end(training), say, board) if leads else nullcontext() as log:
        started, saved = perf_counter() - progress.seconds, perf_counter()
        while not progress.finished:
            if progress.step < _find_end(training):  # Else none was asked for.
                began = perf_counter()
                values = trainer.take_step(progress.step)
                values["images_per_second"] = values.pop("objects") / (perf_counter() - began)
                progress.step += 1
                progress.seconds = perf_counter() - started
                if log is not None:
                    _write_step(log, progress, values, training)
            _measure(trainer, progress, log)
            progress.seconds = perf_counter() - started
            if leads and _is_due(progress, training, perf_counter() - saved):
                save(trainer, run, progress)
                saved = perf_counter()
    return progress


def _write_step(log: TrainingLog, progress: Progress, values: dict[str, float], training: TrainingSection) -> None:
    log.advance(progress.step, values)
    if progress.step % training.log_every == 0:
        figures = values | {"seconds": progress.seconds, "memory": measure_peak_memory() / 2**30}
        log.write(progress.step, "train", figures)


def _measure(trainer: Trainer, progress: Progress, log: TrainingLog | None) -> None:
    """Where it is time, measure on the validation split, each rank its classes; decide whether training ends."""
    training, step = trainer.experiment.training, progress.step
    last = step >= _find_end(training)
    if training.validate_every and (last or step % training.validate_every == 0):
        began = perf_counter()
        measured = trainer.measure()
        progress.note(measured["accuracy"])
        if log is not None:
            log.write(step, "validation", measured | {"seconds": perf_counter() - began})
    progress.finished = last or _is_stale(progress, training)


def _find_end(training: TrainingSection) -> int:
    """Steps after which training ends."""
    return min(training.steps, training.stop or training.steps)


def _is_stale(progress: Progress, training: TrainingSection) -> bool:
    return training.patience is not None and progress.stale >= training.patience


def _is_due(progress: Progress, training: TrainingSection, passed: float) -> bool:
    """Whether now is the moment for a checkpoint, `passed` seconds after the one before."""
    best = progress.best is not None and progress.best["step"] == progress.step
    steps = training.checkpoint_steps is not None and progress.step % training.checkpoint_steps == 0
    seconds = training.checkpoint_seconds is not None and passed >= training.checkpoint_seconds
    return progress.finished or best or steps or seconds


def save(trainer: Trainer, run: Run, progress: Progress) -> None:
    """Write a checkpoint of this moment; the one before goes, unless it is the best."""
    state: dict[str, Any] = {
        "finished": progress.finished,
        "best": progress.best,
        "stale": progress.stale,
        "seconds": round(progress.seconds, 3),
        "random": {"seed": run.experiment.training.seed, "next_step": progress.step},
        "precision": run.precision,
        "threads": run.threads,
        "origin": dict(run.origin),
        "experiment": run.experiment.model_dump(mode="json"),
    }
    average = trainer.average.tensors if trainer.average else {}
    tensors = trainer.matcher.state_dict(), average, read_optimiser(trainer.optimiser)
    keep = [int(progress.best["step"])] if progress.best else []
    save_checkpoint(run.folder, Checkpoint(progress.step, *tensors, state), keep)


def load(trainer: Trainer, run: Run) -> Progress:
    """Take up, on every rank, the checkpoint that is the last one on rank 0; without one, begin."""
    step = share(trainer.team, lambda: max(list_checkpoints(run.folder), default=None))
    if step is None:
        return Progress()
    checkpoint = load_checkpoint(run.folder, step)
    load_into(trainer.matcher, checkpoint.model, str(run.folder))
    load_optimiser(trainer.optimiser, checkpoint.optimiser)
    if trainer.average is not None:
        trainer.average.load(checkpoint.average)
    state, training = checkpoint.state, run.experiment.training
    progress = Progress(step, state["best"], state["stale"], state["seconds"])
    progress.finished = step >= _find_end(training) or (state["finished"] and _is_stale(progress, training))
    return progress
