from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any as Result

import pytest
import torch
import typer
from tiny_experiment import tiny_experiment, write_tiny
from typer.testing import CliRunner

from quadmatch.bench.training import count_calls
from quadmatch.commands.train import train
from quadmatch.experiments.build import build_matcher
from quadmatch.experiments.reading import ExperimentError, read_experiment
from quadmatch.features.weight_files import hash_state
from quadmatch.machine import count_cores
from quadmatch.models.checkpoints import list_checkpoints, load_checkpoint, load_parameters, read_state
from quadmatch.models.load import load
from quadmatch.models.runs import create_run, locked, read_run, settle_precision
from quadmatch.training.fit import build_trainer, fit, resume
from quadmatch.training.log import read_log
from quadmatch.training.trainer import Trainer, TrainingError


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def quiet() -> list[str]:
    return []


def make_trainer(tiny: Path, folder: Path, *changes: str) -> Trainer:
    experiment = tiny_experiment(tiny, changes)
    return build_trainer(create_run(folder, experiment, experiment.features.precision, 1), lambda line: None)


def test_training_learns_and_says_so(tiny, tmp_path, quiet) -> None:
    changes = ["training.steps=40", "training.validate_every=20", "training.validation_pairs=10"]
    changes += ["training.objects=4", "head.options.dropout=0"]
    changes += ["training.classes=4", "constraint=none"]
    experiment = tiny_experiment(tiny, changes)
    untrained = build_trainer(create_run(tmp_path / "0", experiment, "float32", 1), quiet.append).measure()
    progress = fit(experiment, tmp_path / "run", say=quiet.append, board=False)
    assert progress.finished
    assert progress.step == 40
    assert progress.best is not None
    assert progress.best["accuracy"] > untrained["accuracy"] + 5
    lines = read_log(tmp_path / "run")
    train = [line for line in lines if line["kind"] == "train"]
    assert [line["step"] for line in train] == list(range(2, 41, 2))
    assert {"loss", "accuracy", "learning_rate", "seconds", "memory"} <= train[0].keys()
    assert sum(line["loss"] for line in train[-5:]) < sum(line["loss"] for line in train[:5])
    assert 0.05 < train[-1]["memory"] < 6
    assert [line["step"] for line in lines if line["kind"] == "validation"] == [20, 40]
    assert any("float32" in line for line in quiet)


def test_features_are_told_at_the_first_object_at_the_last_and_seldom_between(tiny, tmp_path, quiet) -> None:
    experiment = tiny_experiment(tiny, [f"features.cache={tmp_path / 'cache'}"])
    build_trainer(create_run(tmp_path / "run", experiment, "float32", 1), quiet.append)
    said = [line.split(",")[0] for line in quiet if line.startswith("features of")]
    objects = next(line.split()[4] for line in said)
    assert said == [f"features of {number} of {objects} objects" for number in (1, objects)]


def test_same_experiment_same_parameters_whatever_came_before(tiny, tmp_path, quiet) -> None:
    fit(tiny_experiment(tiny), tmp_path / "a", say=quiet.append, board=False)
    torch.manual_seed(99)
    drawn = torch.get_rng_state()
    fit(tiny_experiment(tiny, ["training.checkpoint_steps=1"]), tmp_path / "b", say=quiet.append, board=False)
    assert torch.equal(torch.get_rng_state(), drawn)
    fit(tiny_experiment(tiny, ["training.seed=1"]), tmp_path / "c", say=quiet.append, board=False)
    first, second, other = (load_parameters(tmp_path / name) for name in "abc")
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert not all(torch.equal(value, other[name]) for name, value in first.items())


def test_best_and_last_are_kept_and_early_stopping_stops(tiny, tmp_path, quiet, monkeypatch) -> None:
    measured = iter([10.0, 30.0, 20.0, 30.0, 40.0])
    monkeypatch.setattr(Trainer, "measure", lambda self: {"accuracy": next(measured)})
    experiment = tiny_experiment(tiny, ["training.steps=50", "training.validate_every=2", "training.patience=2"])
    progress = fit(experiment, tmp_path / "run", say=quiet.append, board=False)
    assert (progress.step, progress.best, progress.stale) == (8, {"step": 4, "accuracy": 30.0}, 2)
    assert list_checkpoints(tmp_path / "run") == [4, 8]
    assert read_state(tmp_path / "run")["finished"]
    best = load_checkpoint(tmp_path / "run", 4)
    loaded = load(tmp_path / "run", precision="float32").state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in best.average.items())
    assert resume(tmp_path / "run", say=quiet.append, board=False).step == 8
    assert "finished" in quiet[-1]


def test_a_run_that_was_stopped_early_goes_on_to_where_the_whole_one_ends(tiny, tmp_path, quiet) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    fit(tiny_experiment(tiny, ["training.steps=4"]), whole, say=quiet.append, board=False)
    stopped = fit(tiny_experiment(tiny, ["training.steps=4", "training.stop=2"]), parts, say=quiet.append, board=False)
    assert (stopped.step, stopped.finished) == (2, True)
    assert resume(parts, say=quiet.append, board=False).step == 2
    assert resume(parts, ["training.stop=9"], say=quiet.append, board=False).step == 4
    assert resume(whole, ["training.stop=3"], say=quiet.append, board=False).step == 4
    expected, found = load_parameters(whole), load_parameters(parts)
    assert all(torch.equal(value, found[name]) for name, value in expected.items())


def test_the_average_is_what_is_measured(tiny, tmp_path) -> None:
    changes = ["training.average_decay=0.9", "training.validate_every=1", "constraint.decoding.weight=0"]
    trainer = make_trainer(tiny, tmp_path / "run", *changes)
    trainer.take_step(0)
    own = {name: value.clone() for name, value in trainer.matcher.state_dict().items()}
    measured = trainer.measure()
    assert all(torch.equal(value, own[name]) for name, value in trainer.matcher.state_dict().items())
    trainer.matcher.load_state_dict(own | trainer.average.tensors)
    trainer.average = None
    assert trainer.measure() == measured


def test_objects_go_through_the_network_once(tiny, tmp_path, monkeypatch) -> None:
    trainer = make_trainer(tiny, tmp_path / "run", "training.objects=4", "training.classes=3", "features.level=local")
    stored, batch = trainer.sampler.sample(0)
    assert (len(stored.counts), len(batch.source)) == (12, 18)
    pictures: list[str] = []
    monkeypatch.setattr("quadmatch.datasets.annotation.read_picture", lambda one: pictures.append(one.name))
    calls: list[int] = []
    trainer.matcher.features.register_forward_hook(lambda module, given, result: calls.append(len(given[1])))
    trainer.take_step(0)
    assert calls == [12]
    assert pictures == []


def test_a_loss_that_is_not_a_number_is_named(tiny, tmp_path) -> None:
    trainer = make_trainer(tiny, tmp_path / "run")
    trainer.loss = lambda matching, pair: matching.assignment.sum() * math.nan
    with pytest.raises(TrainingError, match="the loss is nan at step 4;"):
        trainer.take_step(3)
    trainer.loss = lambda matching, pair: (matching.assignment.sum() * 0).sqrt()
    with pytest.raises(TrainingError, match=r"the gradient's norm is nan at step 4;"):
        trainer.take_step(3)


def test_gradients_are_clipped(tiny, tmp_path) -> None:
    changes = "training.optimiser=sgd", "training.nesterov=false", "training.momentum=0", "training.warmup=0"
    trainer = make_trainer(tiny, tmp_path / "run", *changes, "training.gradient_clip=1e-3", "training.learning_rate=1")
    before = torch.nn.utils.parameters_to_vector(trainer.matcher.parameters()).detach().clone()
    assert trainer.take_step(0)["gradient_norm"] > 1e-3
    after = torch.nn.utils.parameters_to_vector(trainer.matcher.parameters()).detach()
    assert (after - before).norm().item() == pytest.approx(1e-3, rel=1e-2)


def test_a_run_begins_where_another_ended(tiny, tmp_path, quiet) -> None:
    fit(tiny_experiment(tiny), tmp_path / "first", say=quiet.append, board=False)
    trainer = make_trainer(tiny, tmp_path / "second", f"training.start={tmp_path / 'first'}")
    expected, found = load_parameters(tmp_path / "first"), trainer.matcher.state_dict()
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    # A folder or a name may come to hold something else: what it held is written down.
    assert read_run(tmp_path / "second").origin["start_sha256"] == hash_state(expected)
    assert "start_sha256" not in read_run(tmp_path / "first").origin
    with pytest.raises(ValueError, match=r"does not fit the model: .*has the shape"):
        make_trainer(tiny, tmp_path / "third", f"training.start={tmp_path / 'first'}", "head.options.width=4")


def test_what_began_on_frozen_features_trains_its_last_convolutions(tiny, tmp_path, quiet) -> None:
    fit(tiny_experiment(tiny, ["features.level=frozen"]), tmp_path / "first", say=quiet.append, board=False)
    later = [f"training.start={tmp_path / 'first'}", "features.level=late", "training.backbone_learning_rate=1e-3"]
    trainer = make_trainer(tiny, tmp_path / "second", *later)
    head, begun = load_parameters(tmp_path / "first"), trainer.matcher.state_dict()
    assert all(torch.equal(begun[name], value) for name, value in head.items())
    convolutions = {name for name in begun if name not in head}
    assert convolutions == {f"features.network.features.24.{kind}" for kind in ("weight", "bias")}
    assert trainer.matcher.features.trained_state() == {}  # They begin with the initial weights.
    fit(tiny_experiment(tiny, later), tmp_path / "second", say=quiet.append, board=False, again=True)
    trained = load(tmp_path / "second").features.trained_state()
    assert set(trained) == {"features.24.weight", "features.24.bias"}
    # The other way round there is no place for them.
    with pytest.raises(ValueError, match=r"does not fit the model: features\.network\.features\.24.* is unknown"):
        make_trainer(tiny, tmp_path / "third", f"training.start={tmp_path / 'second'}", "features.level=frozen")


def test_a_run_begins_with_the_mean_of_several(tiny, tmp_path, quiet) -> None:
    folders = [tmp_path / name for name in ("first", "second")]
    for seed, folder in enumerate(folders):
        fit(tiny_experiment(tiny, [f"training.seed={seed}"]), folder, say=quiet.append, board=False)
    both = json.dumps([str(folder) for folder in folders])
    changes = [f"training.start={both}", "training.steps=0", "training.average_decay=0.9", "training.validate_every=5"]
    mean = tiny_experiment(tiny, changes)
    progress = fit(mean, tmp_path / "third", say=quiet.append, board=False)
    assert progress.finished
    assert progress.step == 0
    assert progress.best is not None
    assert fit(mean, tmp_path / "third", again=True, say=quiet.append, board=False).finished
    found = load(tmp_path / "third").state_dict()
    one, other = (load_parameters(folder) for folder in folders)
    assert any(not torch.equal(one[name], other[name]) for name in one)
    assert all(torch.allclose(found[name], (one[name] + other[name]) / 2, atol=1e-7) for name in one)
    hashes = read_run(tmp_path / "third").origin["start_sha256"]
    assert hashes == f"{hash_state(one)} {hash_state(other)}"


@pytest.mark.parametrize("name", ["qcdgm1_willow_published", "qcdgm2_voc_published"])
def test_published_experiments_run(tiny, tmp_path, quiet, name: str) -> None:
    changes = ["data.size=32", "data.name=willow", f"data.root={tiny / 'data'}", "data.split=train"]
    changes += [f"features.weights={tiny / 'vgg16.safetensors'}", f"features.cache={tiny / 'cache'}"]
    changes += ["features.precision=float32,channels_last,1", "head.options.width=8", "training.threads=1"]
    experiment = read_experiment(name, [*changes, "training.steps=2", "training.log_every=1", "training.classes=2"])
    assert experiment.features.level == "full"
    progress = fit(experiment, tmp_path / "run", say=quiet.append, board=False)
    assert progress.step == 2
    assert all(math.isfinite(line["loss"]) for line in read_log(tmp_path / "run"))
    initial, trained = build_matcher(experiment).state_dict(), load_parameters(tmp_path / "run")
    moved = [name for name, value in trained.items() if not torch.equal(value, initial[name])]
    assert len(moved) >= len(initial) - 2
    assert "features.network.features.0.weight" in moved


def test_folders_that_are_not_runs_or_are_taken(tiny, tmp_path, quiet) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "thesis.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="taken exists: resume"):
        fit(tiny_experiment(tiny), taken, say=quiet.append)
    with pytest.raises(FileNotFoundError, match=r"taken is not the folder of a run: it has no run\.json"):
        resume(taken, say=quiet.append)
    run = create_run(tmp_path / "run", tiny_experiment(tiny), "float32", 1)
    before = (run.folder / "run.json").read_bytes()
    with locked(run.folder), pytest.raises(BlockingIOError, match="another process trains in"):
        resume(run.folder, ["training.threads=2"], say=quiet.append)
    assert (run.folder / "run.json").read_bytes() == before


def test_a_resumed_run_may_change_the_machine_only(tiny, tmp_path) -> None:
    create_run(tmp_path / "run", tiny_experiment(tiny), "float32", 1)
    assert read_run(tmp_path / "run", ["training.threads=2"]).experiment.training.threads == 2
    with pytest.raises(ExperimentError, match=r"training\.steps=9.* may change only data\.root"):
        read_run(tmp_path / "run", ["training.steps=9"])
    record = tmp_path / "run" / "run.json"
    content = json.loads(record.read_text())
    content["experiment"]["training"]["stepz"] = 3
    record.write_text(json.dumps(content))
    with pytest.raises(ExperimentError, match=r"run\.json: training\.stepz: unknown key"):
        read_run(tmp_path / "run")


def test_number_formats_of_a_resumed_run(tiny, tmp_path, quiet) -> None:
    assert settle_precision("float32,contiguous,1", "float32", quiet.append).memory == "contiguous"
    assert quiet == []
    assert settle_precision("bfloat16,channels_last,1", "float32,channels_last,1", quiet.append).number == "float32"
    assert "slow or missing on this machine: it goes on in float32" in quiet.pop()
    assert settle_precision("float32,channels_last,1", "bfloat16", quiet.append).number == "float32"
    assert "goes on in it" in quiet.pop()
    create_run(tmp_path / "run", tiny_experiment(tiny), "bfloat16,channels_last,1", 1)
    assert resume(tmp_path / "run", say=quiet.append, board=False).finished
    assert any("bfloat16" in line for line in quiet)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["precision"].startswith("float32")


def test_without_tensorboard_training_goes_on(tiny, tmp_path, quiet, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    fit(tiny_experiment(tiny), tmp_path / "run", say=quiet.append)
    assert any("TensorBoard is not installed" in line for line in quiet)


def test_tensorboard_gets_the_figures(tiny, tmp_path, quiet) -> None:
    pytest.importorskip("tensorboard")
    fit(tiny_experiment(tiny), tmp_path / "run", say=quiet.append)
    files = list((tmp_path / "run" / "tensorboard").iterdir())
    assert any(b"train/loss" in path.read_bytes() for path in files)


def test_threads_are_physical_cores(monkeypatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert 1 <= count_cores() <= (os.cpu_count() or 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert count_cores() == 3


def test_the_command_trains_resumes_and_refuses(tiny, tmp_path) -> None:
    app = typer.Typer()
    app.command()(train)

    def run(*words: object) -> Result:
        return CliRunner().invoke(app, [str(word) for word in words])

    path = tmp_path / "mine.toml"
    path.write_text('[data]\nname = "willow"\n[head]\nmethod = "dgm1"\n')
    made = tiny_experiment(tiny).model_dump(mode="json", exclude_none=True)
    changes = [
        f"{section}.{key}={value}"
        for section in made
        for key, value in made[section].items()
        if not isinstance(value, dict)
    ]
    changes += ["head.options.width=8", "training.steps=2"]
    words = [word for change in changes for word in ("--set", change)]
    result = run(path, *words, "--mirror", tiny / "data", "--out", tmp_path / "run", "--no-board")
    assert result.exit_code == 0, result.output
    assert f"{tmp_path / 'run'}: 2 steps" in result.output
    assert read_run(tmp_path / "run").experiment.data.root == tiny / "data"
    assert "is finished" in run("--resume", tmp_path / "run").output
    assert isinstance(run(path, *words, "--out", tmp_path / "run").exception, FileExistsError)
    assert isinstance(run(path, "--set", "training.sed=1").exception, ExperimentError)
    assert "give neither" in str(run(path, "--resume", tmp_path / "run").exception)
    assert "give an experiment" in str(run().exception)


def test_no_python_time_for_each_pair_or_node() -> None:
    assert [row["ours"] - row["peer"] for row in count_calls(width=16)] == [0, 0]
