"""A network in training: one step, one measurement."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.hashing import hash_text
from quadmatch.evaluation.report import Conditions, accuracy, count_matches
from quadmatch.experiments.build import build_loss
from quadmatch.experiments.reading import Experiment
from quadmatch.features.prepared import Stored
from quadmatch.graph import PairBatch
from quadmatch.matcher import Matcher
from quadmatch.matching import Loss
from quadmatch.solvers.linear.hungarian import hungarian
from quadmatch.training.adversary import move_against
from quadmatch.training.augment import Augmentation, build_augmentations
from quadmatch.training.optimisation import MovingAverage, build_optimiser, set_rate
from quadmatch.training.sampling import Sampler
from quadmatch.training.shares import join_shares, take_share
from quadmatch.training.team import Alone, Team, add_gradients
from quadmatch.training.validation import evaluate_together

ATTACKED = 0.5
"""Share of the steps in which `training.adversary` moves keypoints; each costs a second pass of the network."""
ADVICE = "a lower learning rate or training.gradient_clip may help"


class TrainingError(ValueError):
    """Training cannot go on; says at which step and why."""


@dataclass
class Trainer:
    """Network, loss, optimiser, moving average and the data they learn from."""

    experiment: Experiment
    matcher: Matcher
    sampler: Sampler
    validation: list[Annotation]
    """What `measure` measures on."""
    team: Team = field(default_factory=Alone)
    """The processes that train together, of which this is one."""
    loss: Loss = field(init=False)
    augmentations: list[Augmentation] = field(init=False)
    optimiser: torch.optim.Optimizer = field(init=False)
    average: MovingAverage | None = field(init=False)

    def __post_init__(self) -> None:
        training = self.experiment.training
        self.loss = build_loss(self.experiment)
        self.augmentations = build_augmentations(self.experiment)
        self.optimiser = build_optimiser(self.matcher, training)
        self.average = MovingAverage(self.matcher, training.average_decay) if training.average_decay else None

    def take_step(self, step: int) -> dict[str, float]:
        """One batch: every object's features once, all its pairs, one update of the parameters."""
        training, team = self.experiment.training, self.team
        # Dropout depends on the step, not on what was drawn before: nothing has to be restored.
        torch.manual_seed(hash_text("step", training.seed, step, team.rank) >> 1)
        rate = set_rate(self.optimiser, training, step)
        stored, batch = self._draw(step)
        self.matcher.train()
        self.optimiser.zero_grad(set_to_none=True)
        share, part = take_share(stored, batch, self.sampler.extractor.single, team)
        if hash_text("adversary", training.seed, step) < ATTACKED * 2**64 and training.adversary:
            construction = self.experiment.data.construction
            part = move_against(self.matcher, self.loss, share, part, training.adversary, construction)
        matching = join_shares(self.matcher(share, part), len(batch.source), team)
        loss = self.loss(matching, batch.pairs)
        norm = self._find_gradients(loss, step)
        self.optimiser.step()
        if self.average is not None:
            self.average.update(self.matcher, step)
        values = {"loss": loss.item(), "learning_rate": rate, "gradient_norm": norm}
        values |= {"pairs": float(len(batch.source)), "objects": float(len(stored.counts))}
        if (step + 1) % training.log_every == 0:
            permutation = hungarian(matching.assignment.detach(), batch.pairs.mask)
            values["accuracy"] = 100 * accuracy(count_matches(permutation, batch.pairs.truth))
        return values

    def _draw(self, step: int) -> tuple[Stored, PairBatch]:
        """The batch of a step, augmented: a function of (seed, step) alone, so that all ranks have the same."""
        stored, batch = self.sampler.sample(step)
        # The 0 was a rank once: without it, runs of earlier versions would go on with other numbers.
        seed = hash_text("augmentation", self.experiment.training.seed, step, 0) >> 1
        generator = torch.Generator().manual_seed(seed)
        for augment in self.augmentations:
            stored, batch = augment(stored, batch, generator)
        return stored, batch

    def _find_gradients(self, loss: Tensor, step: int) -> float:
        """The gradients of the whole batch, clipped; their norm before that.

        What is not a finite number is so on every rank: all stop with the same error.
        """
        if not math.isfinite(loss.item()):
            raise TrainingError(f"the loss is {loss.item()} at step {step + 1}; {ADVICE}")
        loss.backward()  # type: ignore[no-untyped-call]
        parameters = [one for group in self.optimiser.param_groups for one in group["params"]]
        add_gradients(self.team, parameters)
        largest = self.experiment.training.gradient_clip or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, largest))
        if not math.isfinite(norm):
            raise TrainingError(f"the gradient's norm is {norm} at step {step + 1}; {ADVICE}")
        return norm

    def measure(self) -> dict[str, float]:
        """Figures on the validation split in percent, of the averaged parameters if there are such."""
        with self.average.applied(self.matcher) if self.average else nullcontext():
            conditions = Conditions(
                split=self.experiment.data.validation,
                protocol=self.experiment.data.protocol,
                pairs=self.experiment.training.validation_pairs,
            )
            store = self.sampler.store
            return evaluate_together(self.matcher, self.validation, conditions, store, self.team, self.loss)
