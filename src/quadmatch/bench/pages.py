"""Convolutions in a process that keeps the memory it frees, beside one that gives it back to the system."""

from __future__ import annotations

import os
import subprocess
import sys

from quadmatch.bench.measurement import Row, make_row
from quadmatch.features.int8 import can_multiply_bytes

FORMS = ("float32,channels_last,1", "int8,channels_last,1")
PICTURES, ROUNDS = 8, 3


def run(pictures: int = PICTURES, rounds: int = ROUNDS, size: int = 256) -> list[Row]:
    """Processor seconds of a picture, the system's own included: best of interleaved rounds, a process each."""
    forms = [form for form in FORMS if can_multiply_bytes() or not form.startswith("int8")]
    return [compare(form, pictures, rounds, size) for form in forms]


def compare(form: str, pictures: int, rounds: int, size: int) -> Row:
    """A row for one number format."""
    best = {"keep": float("inf"), "give": float("inf")}
    for _ in range(rounds):
        for way in best:
            best[way] = min(best[way], ask(way, form, str(pictures), str(size)))
    name = f"processor seconds of a picture, {form}: freed memory kept beside given back"
    row = make_row(name, f"{size} × {size} pixels, one at a time", best["keep"], best["give"], 1.0)
    return {key: value for key, value in row.items() if key not in ("required", "met")}


def ask(*words: str) -> float:
    """What a new process says, whose allocator nobody has set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-m", __name__, *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=kept | {"OMP_NUM_THREADS": "1"})
    return float(done.stdout.splitlines()[-1])


def measure(way: str, form: str, pictures: int, size: int) -> float:
    """Processor seconds of a picture, after one that sets everything up."""
    import torch

    from quadmatch.bench.convolutions import LAST, make_network
    from quadmatch.bench.measurement import time_once
    from quadmatch.features.precision import parse_precision
    from quadmatch.features.trunk import Trunk
    from quadmatch.machine import keep_pages

    if way == "keep":
        keep_pages()
    trunk = Trunk(make_network().state_dict(), parse_precision(form), LAST)
    image = torch.zeros(1, size, size, 3, dtype=torch.uint8)
    trunk.run(image, [LAST])
    return time_once(lambda: [trunk.run(image, [LAST]) for _ in range(pictures)]) / pictures


if __name__ == "__main__":
    print(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
