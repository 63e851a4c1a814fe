"""Memory that was freed is used again, where the system's allocator can be told so."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from quadmatch.machine import keep_pages

PROGRAM = """
import resource, sys
from quadmatch.cli import app

if sys.argv[1:]:
    app(sys.argv[1:], standalone_mode=False)
import torch

def count_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**23)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

# A small block may lie in the freed one by chance, so that it is too short once: the best of several counts.
print(min(count_faults() for _ in range(8)))
"""


def count_pages(*words: str, **variables: str) -> int:
    """Pages that a process asks for where it asked for as many before and freed them; `words` are a command first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, env=kept | variables, capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another system's allocator")
def test_a_command_keeps_the_pages_that_it_has_freed() -> None:
    asked = count_pages()
    assert asked > 1000  # A system with large pages would ask for fewer, and gain nothing.
    assert count_pages("list") < asked / 10
    assert count_pages("list", MALLOC_TRIM_THRESHOLD_="131072") > asked / 2  # Whoever has set it knows better.


def test_another_system_is_left_alone(monkeypatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not keep_pages()
    monkeypatch.undo()
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_max=1000")
    assert not keep_pages()
