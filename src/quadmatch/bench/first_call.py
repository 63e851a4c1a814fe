"""How long the first calls on a machine take, while loops are compiled: processor seconds of processes of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from tempfile import TemporaryDirectory

from quadmatch.bench.graphs import correlate
from quadmatch.bench.measurement import Row, run_module, time_once

MOST = {"match_graphs": 10.0, "quadratic_assignment": 6.0}
"""Processor seconds that the first call may take where nothing is compiled yet."""
NODES, CORRELATION = 30, 0.9


def make_call(name: str) -> Callable[[], object]:
    """A call of that function on two noisy graphs; the function is imported already, and its loops are not."""
    function = getattr(import_module(f"quadmatch.graphs.{name}"), name)
    a, b = correlate(NODES, CORRELATION, 0)
    return lambda: function(a, b[::-1, ::-1].copy())


def run() -> list[Row]:
    """For each function: the first call where nothing is compiled, and that of the next process."""
    rows: list[Row] = []
    for name, most in MOST.items():
        with TemporaryDirectory() as folder:
            first, later = (
                run_module("quadmatch.bench.first_call", name, NUMBA_CACHE_DIR=folder)["seconds"] for _ in range(2)
            )
        rows.append(
            {
                "name": f"first call of {name}, nothing compiled yet: processor seconds (at most)",
                "size": f"n = {NODES}, correlation {CORRELATION}",
                "ours": first,
                "required": most,
                "met": first <= most,
                "first_call_of_the_next_process": later,
            }
        )
    return rows


if __name__ == "__main__":
    print(json.dumps({"seconds": time_once(make_call(sys.argv[1]))}))
