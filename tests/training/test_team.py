"""Several ranks train what one would: here they are threads, in tests/launch they are processes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from tiny_experiment import tiny_experiment, write_tiny
from torch import nn

from quadmatch.models.runs import create_run
from quadmatch.training.fit import build_trainer
from quadmatch.training.team import Alone, TeamError, add_gradients, share
from quadmatch.training.trainer import Trainer


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny"))


class Thread(Alone):
    """A rank that is a thread; sums are taken in the order of the ranks."""

    def __init__(self, rank: int, barrier: threading.Barrier, given: list) -> None:
        self.rank, self.world_size, self.barrier, self.given = rank, barrier.parties, barrier, given

    def add(self, tensors) -> None:
        self.given[self.rank] = [one.detach().clone() for one in tensors]
        self.barrier.wait(300)
        for place, one in enumerate(tensors):
            one.detach().copy_(sum(own[place] for own in self.given))
        self.barrier.wait(300)


def train_together(experiment, folder: Path, ranks: int, steps: int) -> list[tuple[Trainer, list[dict[str, float]]]]:
    """Trainers of all ranks after so many steps, and the figures of each step."""
    run = create_run(folder, experiment, experiment.features.precision, 1, ranks)
    barrier, given = threading.Barrier(ranks), [None] * ranks
    trainers = [build_trainer(run, lambda line: None) for _ in range(ranks)]

    def work(rank: int) -> tuple[Trainer, list[dict[str, float]]]:
        trainer = trainers[rank]
        if ranks > 1:
            trainer.team = Thread(rank, barrier, given)
        try:
            values = [trainer.take_step(step) for step in range(steps)]
            return trainer, [*values, trainer.measure()]
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(work, range(ranks)))


@pytest.mark.parametrize(
    ("steps", "changes"),
    [
        (20, ["constraint=none", "training.classes=3", "training.objects=3"]),
        # With the constraint, a change of the last digit is one of the second digit three steps later, alone too.
        (1, ["training.augmentation.jitter=1", "training.augmentation.dropout=0.3", "loss.options.earlier=0.5"]),
        # A loss of sums over the whole batch, more ranks than pairs, and features that are trained.
        (3, ["constraint=none", "loss.options.reading=released", "training.classes=1", "features.level=local"]),
    ],
)
def test_ranks_train_what_one_would(tiny, tmp_path, steps: int, changes: list[str]) -> None:
    always = ["head.options.dropout=0", "training.validate_every=3", "training.log_every=1", f"training.steps={steps}"]
    always += ["training.optimiser=sgd", "training.learning_rate=1e-3", "training.warmup=0"]
    experiment = tiny_experiment(tiny, [*always, *changes])
    ((alone, expected),) = train_together(experiment, tmp_path / "1", 1, steps)
    initial = build_trainer(create_run(tmp_path / "0", experiment, "float32,channels_last,1", 1), lambda line: None)
    wanted, before = alone.matcher.state_dict(), initial.matcher.state_dict()
    assert any(not torch.allclose(before[name], value, atol=1e-4) for name, value in wanted.items())
    for ranks in (2, 3):
        for trainer, values in train_together(experiment, tmp_path / str(ranks), ranks, steps):
            for found, needed in zip(values, expected, strict=True):
                assert found == pytest.approx(needed, rel=1e-4, abs=1e-5)
            for name, value in trainer.matcher.state_dict().items():
                assert torch.allclose(value, wanted[name], atol=2e-6), name


def test_an_object_goes_through_the_network_on_one_rank(tiny, tmp_path) -> None:
    experiment = tiny_experiment(tiny, ["training.classes=4", "training.objects=4", "features.level=local"])
    run = create_run(tmp_path / "run", experiment, experiment.features.precision, 1, 2)
    seen = []
    for rank in range(2):
        trainer = build_trainer(run, lambda line: None)
        trainer.team = Thread(rank, threading.Barrier(2), [])
        trainer.team.add = lambda tensors: None
        trainer.matcher.features.register_forward_hook(lambda module, given, result: seen.append(len(given[1])))
        trainer.take_step(0)
    assert seen == [8, 8]


class Pair(Alone):
    """A rank whose partner has the gradients that are given."""

    world_size = 2

    def __init__(self, others):
        self.others = others

    def add(self, tensors):
        for one, other in zip(tensors, self.others):
            one.add_(other)


def test_a_gradient_that_one_rank_lacks_counts_as_zero() -> None:
    parameters = [nn.Parameter(torch.zeros(2)) for _ in range(3)]
    parameters[0].grad = torch.full((2,), 4.0)
    others = [torch.tensor([0.0, 1.0, 0.0]), torch.zeros(2), torch.full((2,), 6.0), torch.zeros(2)]
    add_gradients(Pair(others), parameters)
    assert [None if one.grad is None else one.grad.tolist() for one in parameters] == [[4, 4], [6, 6], None]


class Radio(Alone):
    """One of two ranks; what rank 0 says is heard by the other, which speaks later."""

    world_size = 2

    def __init__(self, rank, said):
        self.rank, self.said = rank, said

    def broadcast(self, text):
        if self.rank == 0:
            self.said.append(text)
        return self.said[-1]


def test_what_rank_0_computes_and_why_it_stops_is_known_to_all() -> None:
    said: list[str] = []
    assert share(Radio(0, said), lambda: {"accuracy": 0.1}) == {"accuracy": 0.1}
    assert share(Radio(1, said), lambda: pytest.fail("rank 1 computes nothing")) == {"accuracy": 0.1}

    def fail() -> None:
        raise FileExistsError("runs/w1 exists")

    with pytest.raises(FileExistsError, match="runs/w1 exists"):
        share(Radio(0, said), fail)
    with pytest.raises(TeamError, match="rank 1 stops because rank 0 did: FileExistsError: runs/w1 exists"):
        share(Radio(1, said), fail)
