"""Optimisers, learning rates and the moving average of parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from quadmatch.experiments.training_schema import TrainingSection

BACKBONE = "features."
"""Parameters whose names begin like this learn at the backbone's rate."""
LOWEST = 1e-4
"""Share of the highest rate at which schedules end, and of it at which warming up begins."""
SEPARATOR = "/"


def group_parameters(model: nn.Module, training: TrainingSection) -> list[dict[str, Any]]:
    """Groups for an optimiser: backbone and head, each with and without weight decay; empty ones left out.

    Vectors (biases, normalisations) and scalars have no decay: it would only shift what they normalise.
    """
    groups: list[dict[str, Any]] = [
        {"name": f"{part}{kind}", "params": [], "names": [], "rate": rate, "weight_decay": decay}
        for part, rate in (("backbone", training.backbone_learning_rate), ("head", training.learning_rate))
        for kind, decay in (("", training.weight_decay), (" without decay", 0.0))
    ]
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            place = 2 * (not name.startswith(BACKBONE)) + (parameter.ndim < 2)
            groups[place]["params"].append(parameter)
            groups[place]["names"].append(name)
    return [group for group in groups if group["params"] and group["rate"] > 0]


def build_optimiser(model: nn.Module, training: TrainingSection) -> torch.optim.Optimizer:
    """The optimiser of an experiment over the model's trainable parameters."""
    groups = group_parameters(model, training)
    if not groups:
        raise ValueError("nothing to train: the model has no trainable parameters with a rate above zero")
    # One pass over the parameters instead of ten: a step of Adam is bound by memory.
    if training.optimiser == "sgd":
        nesterov = training.nesterov and training.momentum > 0
        return torch.optim.SGD(
            groups, lr=training.learning_rate, momentum=training.momentum, nesterov=nesterov, fused=True
        )
    adam = torch.optim.Adam if training.optimiser == "adam" else torch.optim.AdamW
    return adam(groups, lr=training.learning_rate, fused=True)


def scale_rate(training: TrainingSection, step: int) -> float:
    """Share of the highest learning rate at a step (from 0), a function of the experiment alone."""
    rising = round(training.warmup * training.steps)
    if step < rising:
        done = (step + 1) / rising
        if training.schedule == "one_cycle":
            return LOWEST + (1 - LOWEST) * (1 - math.cos(math.pi * done)) / 2
        return done
    progress = (step - rising) / max(training.steps - rising, 1)
    if training.schedule in ("cosine", "one_cycle"):
        return LOWEST + (1 - LOWEST) * (1 + math.cos(math.pi * progress)) / 2
    if training.schedule == "step":
        passed = sum(step >= share * training.steps for share in training.milestones)
        return float(training.decay**passed)
    return 1.0


def set_rate(optimiser: torch.optim.Optimizer, training: TrainingSection, step: int) -> float:
    """Set every group's learning rate for a step; returns the highest of them."""
    share = scale_rate(training, step)
    for group in optimiser.param_groups:
        group["lr"] = share * group["rate"]
    return max(float(group["lr"]) for group in optimiser.param_groups)


def read_optimiser(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimiser remembers, as named tensors: `<parameter>/<what>`."""
    return {
        f"{name}{SEPARATOR}{key}": value
        for group in optimiser.param_groups
        for name, parameter in zip(group["names"], group["params"])
        for key, value in optimiser.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def load_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Take up what `read_optimiser` gave; names and shapes that fit no parameter are named."""
    known = {
        name: parameter for group in optimiser.param_groups for name, parameter in zip(group["names"], group["params"])
    }
    for full, value in tensors.items():
        name, _, key = full.rpartition(SEPARATOR)
        if name not in known:
            raise ValueError(f"the optimiser's {full!r} belongs to no parameter of the model")
        parameter = known[name]
        if value.ndim == 0:
            kept = value.clone()
        elif value.shape == parameter.shape:
            # In the parameter's own layout, as the optimiser would have made it.
            kept = torch.empty_like(parameter, requires_grad=False).copy_(value)
        else:
            found, needed = tuple(value.shape), tuple(parameter.shape)
            raise ValueError(f"the optimiser's {full!r} has the shape {found}; the parameter has {needed}")
        optimiser.state[parameter][key] = kept.to(parameter.device)


class MovingAverage:
    """Exponential moving average of a model's parameters; buffers are those of the model.

    The decay rises as `(1 + t) / (10 + t)` until it is the one given, so that the start is forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.tensors = {name: one.detach().clone() for name, one in model.named_parameters() if one.requires_grad}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Move towards the model after step number `step`, counted from 0."""
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        for name, parameter in model.named_parameters():
            if name in self.tensors:
                self.tensors[name].lerp_(parameter, share)

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up earlier averages; names and shapes that do not fit are named."""
        if self.tensors.keys() != tensors.keys():
            wrong = ", ".join(sorted(self.tensors.keys() ^ tensors.keys()))
            raise ValueError(f"the moving average does not fit the model; it differs in {wrong}")
        for name, value in tensors.items():
            own = self.tensors[name]
            if own.shape != value.shape:
                found, needed = tuple(value.shape), tuple(own.shape)
                raise ValueError(f"the moving average of {name!r} has the shape {found} and needs {needed}")
            own.copy_(value)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """Within: the model has the averaged parameters; afterwards its own again."""
        self._swap(model)
        try:
            yield
        finally:
            self._swap(model)

    def _swap(self, model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            if name in self.tensors:
                parameter.data, self.tensors[name] = self.tensors[name], parameter.data
