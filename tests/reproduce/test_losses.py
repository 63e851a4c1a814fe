"""The figure of the losses shows what the logs of its runs hold."""

from __future__ import annotations

import json

import pytest
from tiny_experiment import tiny_experiment, write_experiment, write_tiny

from quadmatch.reproduce import losses
from quadmatch.reproduce.items import Settings
from quadmatch.reproduce.making import write_output
from quadmatch.training.log import LOG
from quadmatch.training.trainer import TrainingError


def test_three_losses_are_trained_measured_drawn_and_reused(tmp_path, monkeypatch) -> None:
    tiny = write_tiny(tmp_path / "tiny")
    changes = ("training.steps=4", "training.log_every=1", "training.validate_every=2")
    monkeypatch.setattr(losses, "EXPERIMENT", str(write_experiment(tiny_experiment(tiny), tiny / "small.toml")))
    monkeypatch.setattr(losses, "CHANGES", changes)
    monkeypatch.setattr(losses, "WINDOW", 2)
    settings = Settings(tmp_path / "out", say=lambda line: None)
    made = losses.make(settings)
    runs = made.record["runs"]
    assert list(runs) == ["cross-entropy", "Hungarian attention", "false matching"]
    for log in (run["log"] for run in runs.values()):
        assert [line["step"] for line in log if line["kind"] == "validation"] == [2, 4]
        batches = [line["loss"] for line in log if line["kind"] == "train"]
        assert losses.take_curve(log, "train", "loss") == (
            [2, 4],
            pytest.approx([sum(batches[:2]) / 2, sum(batches[2:]) / 2]),
        )
    first = {name: run["log"][0]["loss"] for name, run in runs.items()}
    assert first["cross-entropy"] >= first["Hungarian attention"]  # the same network, fewer entries
    assert 2 <= first["false matching"] <= 8.5
    panels = made.picture.axes
    assert [one.get_title() for one in panels] == [
        "accuracy, training batches",
        "accuracy, validation split",
        "loss, training batches",
        "loss, validation split",
    ]
    assert [one.get_yscale() for one in panels] == ["linear", "linear", "log", "log"]
    line = panels[3].get_lines()[2]
    measured = [one["loss"] for one in runs["false matching"]["log"] if one["kind"] == "validation"]
    assert line.get_ydata().tolist() == pytest.approx(measured)
    assert len(write_output("losses", made, tmp_path / "out")) == 4
    monkeypatch.setattr("quadmatch.training.fit.fit", None)
    assert losses.make(settings).record == made.record


def test_a_run_that_explodes_is_shown_as_far_as_it_came(tmp_path, monkeypatch) -> None:
    settings = Settings(tmp_path, say=lambda line: None)
    lines = [
        {"step": 1, "kind": "train", "loss": 5.0, "accuracy": 10.0, "gradient_norm": 1e9},
        {"step": 2, "kind": "validation", "loss": 6.0, "accuracy": 9.0},
    ]

    def explode(row, seed, split, settings):
        folder = losses_folder(row, seed, settings)
        folder.mkdir(parents=True)
        (folder / LOG).write_text("".join(json.dumps(line) + "\n" for line in lines))
        raise TrainingError("the loss is inf at step 3")

    from quadmatch.reproduce.reuse import find_run as losses_folder

    monkeypatch.setattr("quadmatch.reproduce.reuse.train", explode)
    assert losses.make(settings).lines[1] == ["cross-entropy", "9.0", "2", "9.0", "10.0", "1e+09"]
