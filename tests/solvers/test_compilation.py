"""What a first call compiles, what it says about that, and where the result is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

NOISY_PAIR = """
    import numpy as np
    import quadmatch as qm
    from numba.core import event

    compiled = []

    class Count(event.Listener):
        def on_start(self, event):
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith("quadmatch."):
                compiled.append(function.__qualname__)

        def on_end(self, event):
            pass

    event.register("numba:compile", Count())
    rng = np.random.default_rng(0)
    a = np.triu(rng.random((30, 30)) < 0.3, 1).astype(float)
    a += a.T
    b = a[::-1, ::-1].copy()
    b[:2] = b[:, :2] = 0
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.slow
def test_first_calls_compile_few_loops_once_each_and_say_so_once(tmp_path: Path):
    """What the second call shares with the first is compiled by then: all in all it needs no more than `most`."""
    calls = {"qm.quadratic_assignment(a, -b, options={'rng': 0})": 14, "qm.match_graphs(a, b)": 20}
    programs = {NOISY_PAIR + f"    {call}\n    print(*compiled)\n": most for call, most in calls.items()}
    names: list[str] = []
    for program, most in programs.items():
        first = run(program, NUMBA_CACHE_DIR=str(tmp_path))
        assert first.stdout.split()
        names += first.stdout.split()
        assert "improve" in names
        assert len(names) == len(set(names)) <= most
        assert first.stderr.count("quadmatch: compiling") == 1
    for program in programs:
        again = run(program, NUMBA_CACHE_DIR=str(tmp_path))
        assert again.stdout.split() == []
        assert again.stderr == ""


@pytest.mark.slow
def test_loops_of_a_read_only_package_are_kept_in_the_users_cache_folder(tmp_path: Path):
    program = """
        from numba.core import caching

        def refuse(self):
            raise PermissionError("read-only")

        name = "InTreeCacheLocator"
        locator = getattr(caching, name, None) or getattr(caching, "_" + name)
        locator.ensure_cache_path = refuse
        from quadmatch.solvers.search.problem import is_symmetric
        import numpy as np
        is_symmetric(np.zeros((2, 2)))
        print(is_symmetric.stats.cache_path)
    """
    environment = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": ""}
    folder = Path(run(program, **environment).stdout.strip())
    assert tmp_path in folder.parents
    assert list(folder.glob("*is_symmetric*.nbc"))
