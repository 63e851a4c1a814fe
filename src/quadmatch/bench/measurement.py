"""How benchmarks measure: processor time of one thread, and peak memory of a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from quadmatch.machine import measure_memory, measure_peak_memory

Row = dict[str, Any]
"""Figures of one benchmark by name: ours, the peer's, their ratio, what was required and whether it is met."""


def time_once(function: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def time_both(
    ours: Callable[[], object], peer: Callable[[], object], *, rounds: int, repeats: int
) -> tuple[float, float]:
    """Processor seconds of one call of each: best of interleaved rounds, for both see the same machine."""
    best_ours = best_peer = float("inf")
    for _ in range(rounds):
        best_ours = min(best_ours, time_once(lambda: [ours() for _ in range(repeats)]) / repeats)
        best_peer = min(best_peer, time_once(peer))
    return best_ours, best_peer


def measure_peak(module: str, *arguments: str) -> float:
    """Bytes by which `python -m module arguments` exceeds, at its peak, what it held when it was ready.

    That module prints them as JSON: see `report_peak`.
    """
    return float(run_module(module, *arguments)["peak_bytes"])


def run_module(module: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """What `python -m module arguments` prints as JSON in its last line; it computes with one thread."""
    variables = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"} | environment
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=variables)
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def report_peak(function: Callable[[], object]) -> None:
    """Print by how many bytes a call exceeds, at its peak, what this process holds now."""
    before = measure_memory()
    function()
    print(json.dumps({"peak_bytes": max(measure_peak_memory() - before, 0)}))


def make_row(name: str, size: str, ours: float, peer: float, required: float) -> Row:
    """A row in which the peer must take `required` times as long."""
    ratio = peer / ours
    return {
        "name": name,
        "size": size,
        "ours": ours,
        "peer": peer,
        "ratio": ratio,
        "required": required,
        "met": ratio >= required,
    }


def load_pygmtools() -> object:
    """The peer of these benchmarks, or a clear word on what is missing."""
    try:
        import pygmtools
    except ImportError as error:
        raise RuntimeError("this benchmark compares with pygmtools: pip install pygmtools") from error
    return pygmtools


@contextmanager
def one_thread() -> Iterator[None]:
    """Within: torch, numpy and scipy compute with one thread; afterwards with as many as before."""
    import torch

    with ExitStack() as stack:
        for read, write in ((torch.get_num_threads, torch.set_num_threads), *_find_blas()):
            stack.callback(write, read())
            write(1)
        yield


def _find_blas() -> list[tuple[Callable[[], int], Callable[[int], object]]]:
    """What reads and what sets the threads of each OpenBLAS that came with numpy and scipy, if any did.

    Its idle threads wait in a loop that counts as processor time: on a busy machine, ten times the work.
    """
    import ctypes

    import numpy
    import scipy

    found: list[tuple[Callable[[], int], Callable[[int], object]]] = []
    for package in (numpy, scipy):
        folder = Path(str(package.__file__)).parent
        for path in (*folder.parent.glob(f"{folder.name}.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")):
            library = ctypes.CDLL(str(path))
            for ending in ("", "64_"):
                names = [f"scipy_openblas_{verb}_num_threads{ending}" for verb in ("get", "set")]
                if all(hasattr(library, name) for name in names):
                    found.append((library[names[0]], library[names[1]]))
    return found
