"""A line a second on stderr while a long search runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

INTERVAL = 1.0
"""Seconds between two lines."""


@contextmanager
def tell_progress(wanted: bool) -> Iterator[Callable[[str], None]]:
    """A function that takes what is being done; a thread repeats it every second, if that is wanted."""
    step, ended, begun = ["beginning"], Event(), time.perf_counter()

    def hear(text: str) -> None:
        step[0] = text

    def repeat() -> None:
        while not ended.wait(INTERVAL):
            print(f"quadmatch: {time.perf_counter() - begun:.0f} s, {step[0]}", file=sys.stderr, flush=True)

    if not wanted:
        yield hear
        return
    thread = Thread(target=repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield hear
    finally:
        ended.set()
        thread.join()
