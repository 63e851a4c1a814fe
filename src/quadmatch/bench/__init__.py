"""Speed and quality beside other packages, each as rows of figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

SOLVERS = {
    "sinkhorn": "quadmatch.bench.sinkhorn",
    "rrwm": "quadmatch.bench.rrwm",
    "qaplib": "quadmatch.bench.qaplib",
    "graphs": "quadmatch.bench.graphs",
    "batch": "quadmatch.bench.batch",
    "first_call": "quadmatch.bench.first_call",
    "scaling": "quadmatch.bench.scaling",
}
IMAGES = {
    "photographs": "quadmatch.bench.photographs",
    "pictures": "quadmatch.bench.pictures",
    "serving": "quadmatch.bench.serving",
    "again": "quadmatch.bench.again",
    "evaluation": "quadmatch.bench.evaluation",
    "training": "quadmatch.bench.training",
    "together": "quadmatch.bench.together",
    "methods": "quadmatch.bench.methods",
    "inference": "quadmatch.bench.inference",
    "turned": "quadmatch.bench.turned",
    "bulk": "quadmatch.bench.bulk",
    "convolutions": "quadmatch.bench.convolutions",
    "pages": "quadmatch.bench.pages",
}
"""Each a module with `run() -> list[Row]`; `qaplib` needs a folder."""
BENCHES = SOLVERS | IMAGES


def run_benches(
    only: Sequence[str] | None = None,
    *,
    among: Mapping[str, str] = SOLVERS,
    qaplib: Path | None = None,
    say: Callable[[str], object] = print,
) -> dict[str, Any]:
    """Rows of the chosen benchmarks or of all, and where they come from; `qaplib` is left out without its folder."""
    from quadmatch.machine import describe_origin

    if unknown := sorted(set(only or ()) - set(among)):
        raise ValueError(f"no benchmark {', '.join(unknown)}; there are {', '.join(among)}")
    rows: list[Any] = []
    for name in only or among:
        if name == "qaplib" and qaplib is None:
            if only:
                raise ValueError("benchmark qaplib needs --qaplib, a folder of QAPLIB's .dat and .sln files")
            say("qaplib: left out, as no folder of its files was named (--qaplib)")
            continue
        say(f"{name} …")
        run = import_module(among[name]).run
        rows += run(qaplib) if name == "qaplib" else run()
    return {"origin": describe_origin(), "rows": rows}
