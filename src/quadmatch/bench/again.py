"""A match of pictures that the server has seen before, beside one of new pictures."""

from __future__ import annotations

import time

import numpy as np

from quadmatch.bench.measurement import Row
from quadmatch.bench.serving import POINTS, SIDE, call, make_body, start_server

TURNS = 6
REQUIRED = 2.0
"""Convolutions are three quarters of a match, and uploads are decoded in both cases."""


def run(turns: int = TURNS, model: str = "default") -> list[Row]:
    """Seconds of a first and of a second match of the same pictures, in turns, by one server."""
    with start_server(model) as (port, _):
        first, second, pictures = measure(port, turns)
    ratio = float(np.median(first) / np.median(second))
    return [
        {
            "name": "serve, a second match of the same pictures beside the first",
            "size": f"{turns} pairs, {SIDE} × {SIDE} pixels, {POINTS} points",
            "ours": float(np.median(second)),
            "peer": float(np.median(first)),
            "ratio": ratio,
            "required": REQUIRED,
            "met": ratio >= REQUIRED and pictures == [2 * turns, 2 * turns],
            "pictures_convolved": pictures[0],
            "pictures_found_again": pictures[1],
        }
    ]


def measure(port: int, turns: int) -> tuple[list[float], list[float], list[int]]:
    """Seconds of each first and second match; pictures that were convolved and found again meanwhile."""
    before = count_pictures(port)
    first: list[float] = []
    second: list[float] = []
    for turn in range(turns):
        body, kind = make_body(turn)
        for times in (first, second):
            start = time.perf_counter()
            status, content = call(port, "/api/match", body, kind)
            times.append(time.perf_counter() - start)
            if status != 200:
                raise RuntimeError(f"the server refused a match: {status}: {str(content)[:200]}")
    after = count_pictures(port)
    return first, second, [now - then for now, then in zip(after, before)]


def count_pictures(port: int) -> list[int]:
    """Pictures that a server has convolved, and those that it has found again."""
    pictures = call(port, "/api/status")[1]["pictures"]
    return [pictures["convolved"], pictures["found_again"]]
