"""Processes that train one run: what one would train, whoever is killed, and none is left behind."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest
import torch
from live_processes import lives
from ray_cluster import find_free_ports
from same_runs import assert_same
from tiny_experiment import tiny_experiment, write_experiment, write_tiny
from typer.testing import CliRunner

from quadmatch.cli import app
from quadmatch.experiments.build import build_matcher
from quadmatch.experiments.reading import read_experiment
from quadmatch.launch.group import Group
from quadmatch.models.checkpoints import list_checkpoints, load_checkpoint, read_state
from quadmatch.models.runs import read_run
from quadmatch.training.fit import fit
from quadmatch.training.log import LOG, read_log

TRAIN = [sys.executable, "-m", "quadmatch", "train"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
TWO = ["--processes", 2, "--no-board"]
KILLS, STEPS = 5, 20
PROGRAM = """
import sys, time
from pathlib import Path
from quadmatch.cli import app
from quadmatch.training.trainer import Trainer

hold, last = Path(sys.argv.pop(1)), int(sys.argv.pop(1))
take_step = Trainer.take_step

def wait_at_the_end(self, step):
    while step == last and hold.exists():  # However late the kill comes, it comes before the end.
        time.sleep(0.01)
    return take_step(self, step)

Trainer.take_step = wait_at_the_end
app()
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny"))


def start(*words: object) -> subprocess.Popen[str]:
    command = [str(word) for word in words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    """What a process wrote, when it and all that it started are gone."""
    try:
        return process.communicate(timeout=300)[0]
    finally:
        process.kill()


def list_ranks(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes that train, rank 0 first."""
    try:
        return sorted(psutil.Process(process.pid).children(), key=lambda one: one.pid)
    except psutil.NoSuchProcess:
        return []


def wait_for_ranks(process: subprocess.Popen[str], before: list[psutil.Process]) -> list[psutil.Process]:
    """Two new processes that train."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        ranks = [one for one in list_ranks(process) if one not in before]
        if len(ranks) == 2:
            return ranks
        time.sleep(0.01)
    return pytest.fail(f"no two processes train: {finish(process)}")


@pytest.fixture(scope="module")
def plain(tiny) -> Path:
    """An experiment whose steps differ by the order of sums alone, however many processes take them."""
    changes = [f"training.steps={STEPS}", "training.classes=3", "training.objects=3", "training.log_every=1"]
    changes += ["constraint=none", "head.options.dropout=0", "training.validate_every=9"]
    changes += ["training.optimiser=sgd", "training.learning_rate=1e-3", "training.warmup=0"]
    return write_experiment(tiny_experiment(tiny, changes), tiny / "plain.toml")


@pytest.fixture(scope="module")
def alone(plain, tmp_path_factory) -> Path:
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    experiment = read_experiment(str(plain))
    fit(experiment, folder, say=lambda line: None, board=False)
    before, after = build_matcher(experiment).state_dict(), load_checkpoint(folder, STEPS).model
    assert any((before[name] - value).abs().max() > 1e-4 for name, value in after.items())
    return folder


def test_one_launched_process_trains_the_same_bits(plain, alone, tmp_path, monkeypatch) -> None:
    (port,) = find_free_ports(1)
    given = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("quadmatch.launch.group.Group", joined := Mock(wraps=Group))
    output = run_here(["train", plain, "--out", tmp_path / "run", "--no-board"])
    assert f"{tmp_path / 'run'}: {STEPS} steps in" in output, output
    assert joined.call_count == 1
    assert_same(tmp_path / "run", alone)


def assert_alike(run: Path, other: Path) -> None:
    """The same figures and parameters, but for the order of sums."""
    for found, expected in zip(read_log(run), read_log(other), strict=True):
        assert found["kind"] == expected["kind"]
        for name in expected.keys() & {"step", "loss", "accuracy", "pairs", "f1"}:
            assert found[name] == pytest.approx(expected[name], rel=1e-4), (found, expected)
    found, expected = (load_checkpoint(one, STEPS).model for one in (run, other))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.allclose(found[name], value, rtol=0, atol=2e-6), name


@pytest.mark.slow
def test_three_processes_train_what_one_does_and_the_same_bits_again(plain, alone, tmp_path) -> None:
    folder, again, cache = tmp_path / "run", tmp_path / "again", f"--set=features.cache={tmp_path / 'cache'}"
    output = finish(start(*TRAIN, plain, "--out", folder, "--processes", 3, "--no-board", cache))
    assert f"{folder}: {STEPS} steps in" in output, output
    assert "features of 15 of 15 objects" in output  # Of 45; the other ranks are silent.
    assert read_run(folder).world_size == 3
    assert_alike(folder, alone)
    output = finish(start(*TORCHRUN[:-1], 3, "-m", "quadmatch", "train", plain, "--out", again, "--no-board", cache))
    assert f"{again}: {STEPS} steps in" in output, output
    assert_same(again, folder)


@pytest.mark.slow
def test_two_processes_train_what_one_does_and_others_go_on_with_their_run(plain, alone, tmp_path) -> None:
    stopped = tmp_path / "stopped"
    output = finish(start(*TRAIN, plain, "--out", stopped, *TWO, "--set", "training.stop=9"))
    assert list_checkpoints(stopped) == [9], output
    for count in (1, 2, 3):
        folder = shutil.copytree(stopped, tmp_path / str(count))
        words = ["train", "--resume", folder, "--processes", count, "--set", f"training.stop={STEPS}", "--no-board"]
        output = run_here(words) if count == 1 else finish(start(*TRAIN[:-1], *words))
        assert f"{folder}: {STEPS} steps in" in output, output
        changes = f"the number of processes changes from 2 to {count}, threads of each: 1. The batches stay" in output
        assert changes == ("will not be bit-identical to one that stayed with 2" in output) == (count != 2)
        assert read_run(folder).world_size == count
        assert (folder / LOG).read_bytes().startswith((stopped / LOG).read_bytes())  # No step is taken again.
        assert_alike(folder, alone)


def run_here(words: list[object]) -> str:
    """What the command says, run within this process."""
    return CliRunner().invoke(app, [str(word) for word in words]).output


def test_a_folder_that_cannot_be_written(tiny, tmp_path) -> None:
    path = write_experiment(tiny_experiment(tiny), tmp_path / "tiny.toml")
    process = start(*TRAIN, path, "--out", path / "run", *TWO)
    ranks = wait_for_ranks(process, [])
    output = finish(process)
    assert process.returncode == 1
    assert "Not a directory" in output
    assert "Traceback" not in output
    assert not any(lives(one) for one in ranks)
    assert [one.name for one in tmp_path.iterdir()] == ["tiny.toml"]


def test_a_rank_that_dies_at_once(tiny, tmp_path) -> None:
    path = write_experiment(tiny_experiment(tiny), tmp_path / "tiny.toml")
    process = start(*TRAIN, path, "--out", tmp_path / "run", *TWO)
    ranks = wait_for_ranks(process, [])
    ranks[1].kill()
    output = finish(process)
    assert process.returncode == 1
    assert "error: rank 1 of 2 ended with exit code -9, and all with it" in output
    assert "Traceback" not in output
    assert not any(lives(one) for one in ranks)
    assert [one.name for one in tmp_path.iterdir()] == ["tiny.toml"]


@pytest.mark.slow
def test_ranks_killed_at_random_moments(tiny, tmp_path) -> None:
    changes = [f"training.steps={STEPS}", "training.checkpoint_steps=2", "training.log_every=1"]
    path = write_experiment(tiny_experiment(tiny, [*changes, "training.validate_every=9"]), tmp_path / "tiny.toml")
    whole, killed, hold = tmp_path / "whole", tmp_path / "killed", tmp_path / "hold"
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    output = finish(start(*TRAIN, path, "--out", whole, *TWO))
    assert read_state(whole)["finished"], output
    hold.touch()
    again = ["--max-restarts", KILLS, program, hold, STEPS - 1, "train", path, "--out", killed, "--no-board"]
    process, ranks = start(*TORCHRUN, *again), []
    for number in range(KILLS):
        ranks = wait_for_ranks(process, ranks)
        if number:  # The first one dies before it has done anything.
            wait_for_progress(process, killed)
        time.sleep(random.uniform(0, 0.3))
        random.choice(ranks).kill()
    ranks = wait_for_ranks(process, ranks)
    wait_for_progress(process, killed)
    # Those who train do not outlive the one who would start them again.
    process.send_signal(signal.SIGKILL)
    psutil.wait_procs(ranks, timeout=200)  # Who has not met the others yet waits for them a minute.
    assert not any(lives(one) for one in ranks)
    finish(process)
    assert not read_state(killed)["finished"]
    hold.unlink()
    output = finish(start(*TORCHRUN, *again))
    assert_same(killed, whole)


def wait_for_progress(process: subprocess.Popen[str], run: Path) -> None:
    """Return when there is a new checkpoint, or the last one before the end."""
    before, end = list_checkpoints(run), time.monotonic() + 120
    while list_checkpoints(run) == before and max(before, default=0) < STEPS - 3 and time.monotonic() < end:
        assert process.poll() is None, finish(process)
        time.sleep(0.005)
