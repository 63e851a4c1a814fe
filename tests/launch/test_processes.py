"""Processes that train one run: what one would train, whoever is killed, and none is left behind."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from live_processes import lives
from same_runs import assert_same
from tiny_experiment import tiny_experiment, write_experiment, write_tiny

from quadmatch.models.checkpoints import list_checkpoints, load_checkpoint, read_state
from quadmatch.models.runs import read_run
from quadmatch.training.fit import fit
from quadmatch.training.log import read_log

TRAIN = [sys.executable, "-m", "quadmatch", "train"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
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


def test_two_processes_train_what_one_does(tiny, tmp_path) -> None:
    changes = ["training.validate_every=3", "constraint=none", "head.options.dropout=0"]
    changes += [f"features.cache={tmp_path / 'cache'}"]
    experiment = tiny_experiment(tiny, changes)
    path = write_experiment(experiment, tmp_path / "tiny.toml")
    output = finish(start(*TRAIN, path, "--out", tmp_path / "two", "--processes", 2, "--no-board"))
    assert f"{tmp_path / 'two'}: 6 steps in" in output, output
    assert "features of 23 of 23 objects" in output  # Of 45: the other rank computes the others, and is silent.
    assert read_run(tmp_path / "two").world_size == 2
    fit(experiment, tmp_path / "one", say=lambda line: None, board=False)
    for found, expected in zip(read_log(tmp_path / "two"), read_log(tmp_path / "one"), strict=True):
        for name in expected.keys() & {"step", "loss", "accuracy", "pairs", "f1"}:
            assert found[name] == pytest.approx(expected[name], rel=1e-4), (found, expected)
    parameters = [load_checkpoint(tmp_path / name).model for name in ("one", "two")]
    assert all((parameters[1][name] - value).abs().max() < 1e-4 for name, value in parameters[0].items())


def test_a_folder_that_cannot_be_written(tiny, tmp_path) -> None:
    path = write_experiment(tiny_experiment(tiny), tmp_path / "tiny.toml")
    process = start(*TRAIN, path, "--out", path / "run", "--processes", 2, "--no-board")
    ranks = wait_for_ranks(process, [])
    output = finish(process)
    assert process.returncode == 1
    assert "Not a directory" in output
    assert "Traceback" not in output
    assert not any(lives(one) for one in ranks)
    assert [one.name for one in tmp_path.iterdir()] == ["tiny.toml"]


def test_a_rank_that_dies_at_once(tiny, tmp_path) -> None:
    path = write_experiment(tiny_experiment(tiny), tmp_path / "tiny.toml")
    process = start(*TRAIN, path, "--out", tmp_path / "run", "--processes", 2, "--no-board")
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
    output = finish(start(*TRAIN, path, "--out", whole, "--processes", 2, "--no-board"))
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
