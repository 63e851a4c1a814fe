from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from quadmatch.experiments.training_schema import TrainingSection
from quadmatch.training.optimisation import (
    MovingAverage,
    build_optimiser,
    group_parameters,
    load_optimiser,
    read_optimiser,
    scale_rate,
    set_rate,
)


def make_model() -> nn.ModuleDict:
    torch.manual_seed(0)
    head = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    return nn.ModuleDict({"features": nn.Linear(2, 3), "head": head})


def learn(model: nn.ModuleDict, optimiser: torch.optim.Optimizer, training: TrainingSection, steps: range) -> None:
    for step in steps:
        set_rate(optimiser, training, step)
        optimiser.zero_grad()
        inputs = torch.randn(5, 2, generator=torch.Generator().manual_seed(step))
        model["head"](model["features"](inputs)).square().mean().backward()
        optimiser.step()


def test_groups_have_their_rates_and_only_matrices_decay() -> None:
    training = TrainingSection(learning_rate=1e-2, backbone_learning_rate=1e-3, weight_decay=0.1)
    groups = {group["name"]: group for group in group_parameters(make_model(), training)}
    assert groups["backbone"]["names"] == ["features.weight"]
    assert groups["backbone without decay"]["names"] == ["features.bias"]
    assert groups["head"]["names"] == ["head.0.weight", "head.2.weight"]
    assert groups["head without decay"]["names"] == ["head.0.bias", "head.1.weight", "head.1.bias", "head.2.bias"]
    assert [groups[name]["rate"] for name in ("backbone", "head")] == [1e-3, 1e-2]
    assert [group["weight_decay"] for group in groups.values()] == [0.1, 0.0, 0.1, 0.0]


def test_a_rate_of_zero_freezes() -> None:
    names = [group["name"] for group in group_parameters(make_model(), TrainingSection(backbone_learning_rate=0))]
    assert names == ["head", "head without decay"]
    with pytest.raises(ValueError, match="nothing to train"):
        build_optimiser(make_model().requires_grad_(False), TrainingSection())


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_same_as_the_plain_optimiser_of_torch(optimiser: str) -> None:
    training = TrainingSection(
        optimiser=optimiser, learning_rate=1e-2, backbone_learning_rate=1e-2, schedule="constant", warmup=0
    )
    ours, theirs = make_model(), make_model()
    learn(ours, build_optimiser(ours, training), training, range(4))
    plain: torch.optim.Optimizer = {
        "sgd": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, nesterov=True),
        "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
        "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0),
    }[optimiser](theirs.parameters())
    for step in range(4):
        plain.zero_grad()
        inputs = torch.randn(5, 2, generator=torch.Generator().manual_seed(step))
        theirs["head"](theirs["features"](inputs)).square().mean().backward()
        plain.step()
    for own, other in zip(ours.parameters(), theirs.parameters()):
        torch.testing.assert_close(own, other)


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_what_an_optimiser_remembers_survives(optimiser: str) -> None:
    training = TrainingSection(optimiser=optimiser, weight_decay=0.01, steps=8)
    whole, first = make_model(), make_model()
    learn(whole, build_optimiser(whole, training), training, range(8))
    stopped = build_optimiser(first, training)
    learn(first, stopped, training, range(3))
    second = make_model()
    second.load_state_dict(first.state_dict())
    resumed = build_optimiser(second, training)
    load_optimiser(resumed, {name: value.clone() for name, value in read_optimiser(stopped).items()})
    learn(second, resumed, training, range(3, 8))
    for name, value in whole.state_dict().items():
        assert torch.equal(second.state_dict()[name], value), name


def test_foreign_memories_are_named() -> None:
    optimiser = build_optimiser(make_model(), TrainingSection())
    with pytest.raises(ValueError, match=r"'head\.9\.weight/exp_avg' belongs to no parameter"):
        load_optimiser(optimiser, {"head.9.weight/exp_avg": torch.zeros(1)})
    with pytest.raises(ValueError, match=r"'features\.weight/exp_avg' has the shape \(7,\)"):
        load_optimiser(optimiser, {"features.weight/exp_avg": torch.zeros(7)})


@given(
    steps=st.integers(1, 300),
    warmup=st.floats(0, 1),
    schedule=st.sampled_from(["constant", "cosine", "one_cycle", "step"]),
)
def test_rates_rise_then_never_rise_again(steps: int, warmup: float, schedule: str) -> None:
    training = TrainingSection(steps=steps, warmup=warmup, schedule=schedule, milestones=(0.5, 0.8))
    rates = [scale_rate(training, step) for step in range(steps)]
    assert all(0 < rate <= 1 for rate in rates)
    rising = round(warmup * steps)
    assert all(low <= high for low, high in pairwise(rates[:rising]))
    assert all(low >= high for low, high in pairwise(rates[rising:]))


def test_shapes_of_the_schedules() -> None:
    def rates(schedule: str, **options: object) -> list[float]:
        training = TrainingSection(steps=100, warmup=0, schedule=schedule, **options)
        return [scale_rate(training, step) for step in range(100)]

    assert rates("constant") == [1.0] * 100
    steps = rates("step", milestones=(0.5, 0.8), decay=0.1)
    assert steps == pytest.approx([1.0] * 50 + [0.1] * 30 + [0.01] * 20)
    assert rates("cosine")[50] == pytest.approx(0.5, abs=1e-3)
    assert rates("cosine")[-1] < 0.002
    training = TrainingSection(steps=100, warmup=0.3, schedule="one_cycle")
    cycle = [scale_rate(training, step) for step in range(100)]
    assert cycle[0] < 0.01
    assert cycle[29] == pytest.approx(1)
    assert cycle[-1] < 0.002


def test_moving_average_is_the_weighted_sum() -> None:
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(0.0)
    average = MovingAverage(model, 0.5)
    expected = 0.0
    for step, value in enumerate([1.0, 3.0, -2.0, 5.0] * 5):
        with torch.no_grad():
            model.weight.fill_(value)
        average.update(model, step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
    with average.applied(model):
        assert model.weight.item() == pytest.approx(expected)
    assert model.weight.item() == 5.0
    with pytest.raises(ValueError, match="bias"):
        average.load({"weight": torch.zeros(1, 1), "bias": torch.zeros(1)})
    with pytest.raises(ValueError, match=r"'weight' has the shape \(2,\)"):
        average.load({"weight": torch.zeros(2)})
