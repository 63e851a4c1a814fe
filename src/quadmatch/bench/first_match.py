"""Run as a program: seconds of a first and a second match of two photographs, and what they went into."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any


def measure(images: list[str], files: list[str]) -> dict[str, float]:
    """Seconds since the process began, and those of a second match and of its convolutions."""
    began = _find_start()
    import_module("quadmatch.cli")  # what the command imports
    from quadmatch.models.load import load
    from quadmatch.own_images.answer import Settings, describe_match
    from quadmatch.own_images.loading import load_picture
    from quadmatch.own_images.warm_up import load_ahead

    def match(matcher: Any = None) -> Any:
        pictures = [load_picture(image, file) for image, file in zip(images, files)]
        if matcher is None:
            load_ahead()
            matcher = load()
        result = matcher.match_prepared(matcher.prepare(pictures), [0], [1])[0]
        describe_match(result, pictures[0], pictures[1], Settings())
        return matcher

    matcher = match()
    total, processor = time.time() - began, time.process_time()
    trunk, convolution = matcher.features.trunk, 0.0
    run = trunk.run

    def timed(*given: Any) -> Any:
        nonlocal convolution
        start = time.perf_counter()
        result = run(*given)
        convolution += time.perf_counter() - start
        return result

    trunk.run = timed
    start = time.perf_counter()
    match(matcher)
    return {
        "total": total,
        "processor": processor,
        "second": time.perf_counter() - start,
        "second_processor": time.process_time() - processor,
        "convolution": convolution,
    }


def _find_start() -> float:
    """When this process began, in seconds since the epoch."""
    from pathlib import Path

    try:
        import os

        ticks = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        running = float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
        return time.time() - running
    except (OSError, ValueError, IndexError):
        return time.time() - time.process_time()


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1:3], sys.argv[3:5])))
