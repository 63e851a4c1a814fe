"""What is wrong with the variables or the address is said at once, and nobody waits for ever."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from ray_cluster import find_free_ports
from typer.testing import CliRunner

from quadmatch.cli import app
from quadmatch.launch.group import join_group
from quadmatch.training.team import Alone, TeamError


@pytest.fixture
def held():
    """A port at which nobody listens, nor can anybody else begin to."""
    with socket.socket() as made:
        made.bind(("localhost", 0))
        yield made


@pytest.fixture
def launched(monkeypatch, held):
    """Variables of rank 1 of 2, at that port."""
    port = held.getsockname()[1]
    given = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    return monkeypatch


def refuse(match: str) -> None:
    with pytest.raises(TeamError, match=match), join_group(0.3):
        pytest.fail("nobody is there to join")


def test_who_was_not_launched_is_alone(monkeypatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with join_group() as team:
        assert isinstance(team, Alone)


def test_nobody_answers(launched) -> None:
    refuse(r"rank 1 of 2 waited 0.3 seconds at localhost:\d+ for the others, in vain \(.*refused\)")


def test_the_command_says_so_and_makes_nothing(launched, tmp_path) -> None:
    words = ["train", "qcdgm1_willow", "--out", str(tmp_path / "run"), "--wait", "0.3"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert done.output.startswith("error: rank 1 of 2 waited 0.3 seconds at localhost:")
    assert len(done.output.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_no_machine(launched) -> None:
    launched.setenv("MASTER_ADDR", "no.machine.invalid")
    refuse(r"rank 1 of 2 waited 0.3 seconds at no\.machine\.invalid:\d+ for the others")


def test_nobody_comes(launched, held) -> None:
    held.close()
    launched.setenv("RANK", "0")
    refuse(r"rank 0 of 2 waited 0.3 seconds at localhost:\d+ for the others, in vain")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("RANK", "2", "RANK is 2; it must be below WORLD_SIZE, which is 2"),
        ("WORLD_SIZE", "two", "WORLD_SIZE must be a whole number, got 'two'"),
        ("MASTER_PORT", "", "are set, but not MASTER_PORT: start the ranks by torchrun"),
        ("MASTER_PORT", "99999999", "waited 0.3 seconds at localhost:99999999"),
    ],
)
def test_a_variable_is_wrong(launched, name: str, value: str, match: str) -> None:
    launched.setenv(name, value)
    refuse(match)


LEAVES = """
from pathlib import Path
import torch
from quadmatch.launch.group import join_group

with join_group() as team:
    parameter = torch.ones(3, requires_grad=True)
    optimiser = torch.optim.SGD([parameter], lr=0.1)  # Imports more of torch.distributed, now that there is a group.
    team.add([parameter.detach()])
print(sorted(one.joinpath("comm").read_text().strip() for one in Path("/proc/self/task").iterdir()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are listed by /proc")
def test_no_thread_of_the_group_is_left_when_it_was_left() -> None:
    """A thread that lets go of a tensor while the interpreter ends would end the process by SIGABRT."""
    (port,) = find_free_ports(1)
    given = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    done = subprocess.run(
        [sys.executable, "-c", LEAVES], env=os.environ | given, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "python" in done.stdout
    assert "gloo" not in done.stdout
