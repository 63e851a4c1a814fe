"""A run that is killed, again and again, ends with the same bits as one that never was."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from same_runs import assert_same
from tiny_experiment import tiny_experiment, write_tiny

from quadmatch.experiments.reading import ExperimentError
from quadmatch.models.checkpoints import list_checkpoints, read_state
from quadmatch.models.runs import create_run, read_run
from quadmatch.training.fit import fit, resume
from quadmatch.training.log import LOG, cut_log, read_log
from quadmatch.training.trainer import Trainer

STEPS = 20
CHANGES = [f"training.steps={STEPS}", "training.checkpoint_steps=2", "training.log_every=1"]
CHANGES += ["training.validate_every=9", "constraint.decoding.weight=0"]
PROGRAM = """
import json, sys, time
from quadmatch.experiments.reading import check_experiment
from quadmatch.training.trainer import Trainer
from quadmatch.training.fit import fit, resume

folder, tables, last = sys.argv[1:]
take_step = Trainer.take_step

def wait_at_the_end(self, step, *arguments):
    if step == int(last):  # However late the kill comes, it comes before the end.
        time.sleep(600)
    return take_step(self, step, *arguments)

Trainer.take_step = wait_at_the_end
if tables:
    fit(check_experiment(json.loads(tables), "tiny"), folder, board=False)
else:
    resume(folder, board=False)
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny"))


def run_until_killed(folder: Path, tables: str, seconds: float) -> None:
    """Train in a process of its own, and kill it `seconds` after it has made progress."""
    before = list_checkpoints(folder)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), tables, str(STEPS - 1)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        while process.poll() is None and list_checkpoints(folder) == before and max(before, default=0) < STEPS - 3:
            time.sleep(0.005)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        output = process.communicate()[0].decode()
        assert process.returncode == -signal.SIGKILL, output
    finally:
        process.kill()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_at_random_moments(tiny, tmp_path) -> None:
    experiment = tiny_experiment(tiny, CHANGES)
    fit(experiment, tmp_path / "whole", say=lambda line: None, board=False)
    killed = tmp_path / "killed"
    for tables in (experiment.model_dump_json(), ""):
        run_until_killed(killed, tables, random.uniform(0, 0.2))
        assert not read_state(killed)["finished"]
    resume(killed, say=lambda line: None, board=False)
    assert_same(killed, tmp_path / "whole")


@pytest.mark.parametrize(
    "changes",
    [
        ["features.level=local", "training.optimiser=adam"],
        ["features.level=late", "training.optimiser=adamw"],
        ["features.level=full", "training.optimiser=sgd"],
    ],
)
def test_interrupted_at_every_level(tiny, tmp_path, monkeypatch, changes: list[str]) -> None:
    experiment = tiny_experiment(
        tiny, ["training.steps=2", "training.checkpoint_steps=1", "training.average_decay=0", *changes]
    )
    fit(experiment, tmp_path / "whole", say=lambda line: None, board=False)
    take_step = Trainer.take_step

    def interrupt(self: Trainer, step: int, *arguments: Any) -> dict[str, float]:
        if step == 1:
            raise KeyboardInterrupt
        return take_step(self, step, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "take_step", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fit(experiment, tmp_path / "interrupted", say=lambda line: None, board=False)
    resume(tmp_path / "interrupted", say=lambda line: None, board=False)
    assert_same(tmp_path / "interrupted", tmp_path / "whole")


def test_a_run_killed_before_its_first_checkpoint_begins_again(tiny, tmp_path, monkeypatch) -> None:
    def die(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("quadmatch.training.fit.build_sampler", die)
        with pytest.raises(KeyboardInterrupt):
            fit(tiny_experiment(tiny), tmp_path / "run", say=lambda line: None, board=False)
    assert resume(tmp_path / "run", say=lambda line: None, board=False).finished


def test_a_line_that_was_cut_short_is_forgotten(tmp_path) -> None:
    path = tmp_path / LOG
    path.write_text('{"step": 1, "kind": "train"}\n{"step": 2, "kind": "train"}\n{"step": 3, "ki')
    cut_log(path, 1)
    assert path.read_text() == '{"step": 1, "kind": "train"}\n'
    assert read_log(tmp_path) == [{"step": 1, "kind": "train"}]


def test_a_run_goes_on_with_another_number_of_processes_and_says_so(tiny, tmp_path) -> None:
    said: list[str] = []
    create_run(tmp_path / "run", tiny_experiment(tiny, ["training.steps=2"]), "float32,channels_last,1", 1, 3)
    assert resume(tmp_path / "run", say=said.append, board=False).finished
    assert any("processes changes from 3 to 1, threads of each: 1" in line and "bit-identical" in line for line in said)
    assert read_run(tmp_path / "run").world_size == 1


def test_what_is_launched_again_goes_on_unless_it_is_another_experiment(tiny, tmp_path, monkeypatch) -> None:
    experiment, options = tiny_experiment(tiny), {"say": lambda line: None, "board": False}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json.0.partial").touch()  # As a kill leaves it.
    first = fit(experiment, tmp_path / "run", **options)
    with pytest.raises(FileExistsError, match="run exists: resume"):
        fit(experiment, tmp_path / "run", **options)
    monkeypatch.setattr(Trainer, "take_step", lambda *arguments: pytest.fail("it is finished"))
    changed = tiny_experiment(tiny, ["training.log_every=1"])
    assert fit(changed, tmp_path / "run", again=True, **options).step == first.step
    assert read_run(tmp_path / "run").experiment.training.log_every == 1
    other = tiny_experiment(tiny, ["head.options.width=8"])
    with pytest.raises(ExperimentError, match=r"another experiment: head\.options\.width is 16 in it and 8 here"):
        fit(other, tmp_path / "run", again=True, **options)
