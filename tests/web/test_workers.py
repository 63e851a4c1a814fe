"""A server of several processes: one that dies is replaced, and none outlives the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import httpx
import psutil
import pytest
from live_processes import lives
from web_server import start_workers, wait_until


def list_workers(process) -> list[psutil.Process]:
    """The processes that serve: what multiprocessing itself starts is left out."""
    found = []
    for one in psutil.Process(process.pid).children():
        with suppress(psutil.Error):  # one that has just ended
            found += [one] if "spawn_main" in " ".join(one.cmdline()) else []
    return found


def ask(address) -> int:
    return httpx.get(f"{address}/api/status", timeout=60).status_code


def test_a_worker_that_dies_is_replaced_and_none_is_left_at_the_end() -> None:
    with start_workers() as (address, process):
        before = list_workers(process)
        assert len(before) == 2
        before[0].kill()
        assert ask(address) == 200  # by the other one
        wait_until(lambda: len(list_workers(process)) == 2 and not lives(before[0]))
        assert "exit code -9; another takes its place" in process.stdout.readline()
        after = list_workers(process)
        assert ask(address) == 200
        process.terminate()
        assert process.wait(60) == 0
        assert not any(lives(one) for one in after)
    with pytest.raises(httpx.ConnectError):
        ask(address)


def test_workers_end_when_their_parent_is_killed() -> None:
    with start_workers() as (_, process):
        workers = list_workers(process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
        wait_until(lambda: not any(lives(one) for one in workers))


def test_a_worker_that_cannot_serve_is_one_line() -> None:
    words = [sys.executable, "-m", "quadmatch", "serve", "--no-open", "--port", "0", "--workers", "2"]
    done = subprocess.run([*words, "--model", "nothing"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "error: a worker cannot serve: 'nothing' is neither" in done.stderr
    assert "Traceback" not in done.stderr
