"""A network in training: one step, one measurement, one checkpoint."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from quadmatch.checkpoints import Checkpoint, list_checkpoints, load_checkpoint, load_into, save_checkpoint
from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.hashing import hash_text
from quadmatch.evaluation import evaluate
from quadmatch.experiment import Experiment, build_loss
from quadmatch.matcher import Matcher
from quadmatch.matching import Loss
from quadmatch.metrics import accuracy, count_matches
from quadmatch.optimisation import MovingAverage, build_optimiser, load_optimiser, read_optimiser, set_rate
from quadmatch.runs import Run
from quadmatch.sampling import Sampler
from quadmatch.solvers.hungarian import hungarian

Reduce = Callable[[Sequence[Tensor]], None]
"""Replaces gradients by their mean over all ranks, in place."""


class TrainingError(ValueError):
    """Training cannot go on; says at which step and why."""


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
    finished: bool = False

    def note(self, measured: float) -> None:
        """Take account of a measurement on the validation split."""
        if self.best is None or measured > self.best["accuracy"]:
            self.best, self.stale = {"step": self.step, "accuracy": measured}, 0
        else:
            self.stale += 1


@dataclass
class Trainer:
    """Network, loss, optimiser, moving average and the data they learn from."""

    experiment: Experiment
    matcher: Matcher
    sampler: Sampler
    validation: list[Annotation]
    loss: Loss = field(init=False)
    optimiser: torch.optim.Optimizer = field(init=False)
    average: MovingAverage | None = field(init=False)

    def __post_init__(self) -> None:
        training = self.experiment.training
        self.loss = build_loss(self.experiment)
        self.optimiser = build_optimiser(self.matcher, training)
        self.average = MovingAverage(self.matcher, training.average_decay) if training.average_decay else None

    def take_step(
        self, step: int, rank: int = 0, world_size: int = 1, reduce: Reduce | None = None
    ) -> dict[str, float]:
        """One batch: every object's features once, all its pairs, one update of the parameters."""
        training = self.experiment.training
        # Dropout depends on the step, not on what was drawn before: nothing has to be restored.
        torch.manual_seed(hash_text("step", training.seed, step, rank) >> 1)
        rate = set_rate(self.optimiser, training, step)
        stored, batch = self.sampler.sample(step, rank, world_size)
        self.matcher.train()
        self.optimiser.zero_grad(set_to_none=True)
        matching = self.matcher(stored, batch)
        loss = self.loss(matching, batch.pairs)
        if not math.isfinite(loss.item()):
            raise TrainingError(f"the loss is {loss.item()} at step {step + 1}; {ADVICE}")
        loss.backward()  # type: ignore[no-untyped-call]
        norm = self._clip(step, reduce)
        self.optimiser.step()
        if self.average is not None:
            self.average.update(self.matcher, step)
        values = {"loss": loss.item(), "learning_rate": rate, "gradient_norm": norm}
        values |= {"pairs": float(len(batch.source)), "objects": float(len(stored.counts))}
        if (step + 1) % training.log_every == 0:
            permutation = hungarian(matching.assignment.detach(), batch.pairs.mask)
            values["accuracy"] = 100 * accuracy(count_matches(permutation, batch.pairs.truth))
        return values

    def _clip(self, step: int, reduce: Reduce | None) -> float:
        """Bring the gradients together and to the largest norm that is allowed; returns the norm before."""
        parameters = [one for group in self.optimiser.param_groups for one in group["params"]]
        if reduce is not None:
            reduce([one.grad for one in parameters if one.grad is not None])
        largest = self.experiment.training.gradient_clip or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, largest))
        if not math.isfinite(norm):
            raise TrainingError(f"the gradient's norm is {norm} at step {step + 1}; {ADVICE}")
        return norm

    def measure(self) -> dict[str, float]:
        """Figures on the validation split in percent, of the averaged parameters if there are such."""
        with self.average.applied(self.matcher) if self.average else nullcontext():
            mean = evaluate(
                self.matcher,
                self.validation,
                protocol=self.experiment.data.protocol,
                pairs=self.experiment.training.validation_pairs,
                store=self.sampler.store,
            ).mean
        return {"accuracy": mean.accuracy, "f1": mean.f1}

    def save(self, run: Run, progress: Progress) -> None:
        """A checkpoint of this moment; the one before goes, unless it is the best."""
        state: dict[str, Any] = {
            "finished": progress.finished,
            "best": progress.best,
            "stale": progress.stale,
            "seconds": round(progress.seconds, 3),
            "random": {"seed": self.experiment.training.seed, "next_step": progress.step},
            "precision": run.precision,
            "threads": run.threads,
            "origin": dict(run.origin),
            "experiment": self.experiment.model_dump(mode="json"),
        }
        average = self.average.tensors if self.average else {}
        tensors = self.matcher.state_dict(), average, read_optimiser(self.optimiser)
        keep = [int(progress.best["step"])] if progress.best else []
        save_checkpoint(run.folder, Checkpoint(progress.step, *tensors, state), keep)

    def load(self, run: Run) -> Progress:
        """Take up the last checkpoint of a run; without one, begin."""
        if not list_checkpoints(run.folder):
            return Progress()
        checkpoint = load_checkpoint(run.folder)
        load_into(self.matcher, checkpoint.model, str(run.folder))
        load_optimiser(self.optimiser, checkpoint.optimiser)
        if self.average is not None:
            self.average.load(checkpoint.average)
        state = checkpoint.state
        return Progress(checkpoint.step, state["best"], state["stale"], state["seconds"], state["finished"])


ADVICE = "a lower learning rate or training.gradient_clip may help"
