from pathlib import Path

import pytest
import torch
from tiny_experiment import tiny_experiment, write_tiny

from quadmatch.delaunay import delaunay
from quadmatch.models.checkpoints import load_parameters
from quadmatch.models.runs import create_run
from quadmatch.training.adversary import move_against
from quadmatch.training.fit import build_trainer, fit, resume


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny"))


def quiet(_: str) -> None:
    pass


@pytest.mark.parametrize("pixels", [0.5, 4.0])
def test_keypoints_move_to_where_the_loss_is_larger(tiny, tmp_path, pixels: float) -> None:
    experiment = tiny_experiment(tiny)
    trainer = build_trainer(create_run(tmp_path / "run", experiment, "float32", 1), quiet)
    trainer.matcher.eval()
    stored, batch = trainer.sampler.sample(0)
    moved = move_against(trainer.matcher, trainer.loss, stored, batch, pixels, "delaunay")
    for before, after in ((batch.pairs.source, moved.pairs.source), (batch.pairs.target, moved.pairs.target)):
        assert torch.equal(before.mask, after.mask)
        steps = (after.points - before.points).abs()
        assert not steps[~before.mask].any()
        assert ((steps[before.mask] - pixels).abs() < 1e-3).float().mean() > 0.8  # Some coordinates do not matter.
        for points, mask, adjacency in zip(after.points, after.mask, after.adjacency):
            assert torch.equal(adjacency[mask][:, mask], delaunay(points[mask]))
    assert torch.equal(moved.pairs.truth, batch.pairs.truth)
    with torch.no_grad():
        losses = [trainer.loss(trainer.matcher(stored, one), one.pairs).item() for one in (batch, moved)]
    assert losses[1] > losses[0]
    assert all(one.grad is None for one in trainer.matcher.parameters())  # Nothing is learned from looking.


def test_an_attacked_run_that_was_stopped_goes_on_with_the_same_bits(tiny, tmp_path) -> None:
    words = ["training.adversary=4", "training.steps=6", "training.checkpoint_steps=3"]
    experiment = tiny_experiment(tiny, words)
    fit(experiment, tmp_path / "whole", say=quiet)
    fit(tiny_experiment(tiny, [*words, "training.stop=3"]), tmp_path / "parts", say=quiet)
    resume(tmp_path / "parts", ["training.stop=6"], say=quiet)
    expected, found = load_parameters(tmp_path / "whole"), load_parameters(tmp_path / "parts")
    assert all(torch.equal(value, found[name]) for name, value in expected.items())
    fit(tiny_experiment(tiny, words[1:]), tmp_path / "plain", say=quiet)
    other = load_parameters(tmp_path / "plain")
    assert not all(torch.equal(value, other[name]) for name, value in expected.items())
