"""Speed and quality beside other packages, each as rows of figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

BENCHES = {
    "sinkhorn": "quadmatch.bench.sinkhorn",
    "rrwm": "quadmatch.bench.rrwm",
    "qaplib": "quadmatch.bench.qaplib",
    "graphs": "quadmatch.bench.graphs",
    "batch": "quadmatch.bench.batch",
    "scaling": "quadmatch.bench.scaling",
    "pictures": "quadmatch.bench.pictures",
    "serving": "quadmatch.bench.serving",
}
"""Each a module with `run() -> list[Row]`; `qaplib` needs a folder."""


def run_benches(
    only: Sequence[str] | None = None,
    *,
    qaplib: Path | None = None,
    say: Callable[[str], object] = print,
) -> dict[str, Any]:
    """All rows of the chosen benchmarks, and where they come from; without its folder `qaplib` is left out."""
    from quadmatch.provenance import describe_origin

    if unknown := sorted(set(only or ()) - set(BENCHES)):
        raise ValueError(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    rows: list[Any] = []
    for name in only or BENCHES:
        if name == "qaplib" and qaplib is None:
            if only:
                raise ValueError("benchmark qaplib needs --qaplib, a folder of QAPLIB's .dat and .sln files")
            say("qaplib: left out, as no folder of its files was named (--qaplib)")
            continue
        say(f"{name} …")
        run = import_module(BENCHES[name]).run
        rows += run(qaplib) if name == "qaplib" else run()
    return {"origin": describe_origin(), "rows": rows}
