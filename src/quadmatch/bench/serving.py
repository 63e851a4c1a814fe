"""The page's server under clients that match all at once, beside clients that come one by one."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import count
from typing import Any

import numpy as np

from quadmatch.bench.measurement import Row
from quadmatch.machine import measure_memory, measure_peak_memory

CLIENTS, SECONDS, SIDE, POINTS = 8, 60.0, 400, 20
REQUIRED = 0.9
"""Clients at once are not served more slowly than one by one, within what a machine varies."""
GROWTH = 200.0
"""Megabytes by which the server's memory may exceed, at most, the most it held during its first batches."""
NUMBERS = count()
"""Of requests: no two have the same pictures, which the server would know again."""


def make_body(client: int) -> tuple[bytes, str]:
    """A request of one client: two noisy views of one scene, and keypoints in them."""
    from PIL import Image

    random = np.random.default_rng(client)
    scene = Image.fromarray(random.integers(0, 256, (25, 25, 3), dtype=np.uint8))
    pixels = np.asarray(scene.resize((SIDE, SIDE), Image.Resampling.BICUBIC)).astype(np.float64)
    points = random.uniform(42, SIDE - 40, (POINTS - 1, 2)).round(1).tolist()
    points.insert(0, [41.0, 40.0])
    boundary, parts = "quadmatch-serving", []
    for side in "ab":
        noisy = (pixels + random.normal(0, 8, pixels.shape)).clip(0, 255).astype(np.uint8)
        buffer = BytesIO()
        Image.fromarray(noisy).save(buffer, "JPEG")
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="image_{side}"; filename="{side}.jpg"'
        parts += [head.encode(), b"\r\n\r\n", buffer.getvalue(), b"\r\n"]
        field = f'--{boundary}\r\nContent-Disposition: form-data; name="points_{side}"\r\n\r\n'
        parts.append(f"{field}{json.dumps(points)}\r\n".encode())
    parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), f"multipart/form-data; boundary={boundary}"


def renew(body: bytes, number: int) -> bytes:
    """The request with a point a hair elsewhere in both pictures: a server has not seen those."""
    return body.replace(b"\r\n\r\n[[41.0", b"\r\n\r\n[[41.%06d" % number)


@contextmanager
def start_server(model: str) -> Iterator[tuple[int, int]]:
    """The port and the process of a server of its own, stopped at the end."""
    words = [sys.executable, "-m", "quadmatch", "serve", "--no-open", "--port", "0", "--model", model]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            for line in server.stdout:
                if line.startswith("http://"):
                    yield int(line.split("/")[2].rpartition(":")[2]), server.pid
                    return
            raise RuntimeError("the server ended before it listened")
        finally:
            server.terminate()


def call(port: int, path: str, body: bytes | None = None, kind: str = "") -> tuple[int, Any]:
    """The status and the JSON of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST" if body else "GET", path, body, {"Content-Type": kind} if body else {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def press(port: int, clients: int, seconds: float) -> tuple[list[float], list[str]]:
    """How long each match took that began within the time, at least one a client, and what went wrong."""
    durations: list[float] = []
    faults: list[str] = []
    end = time.perf_counter() + seconds

    def ask(body: bytes, kind: str) -> None:
        start = time.perf_counter()
        try:
            status, content = call(port, "/api/match", body, kind)
        except OSError as error:
            faults.append(str(error))
            return
        if status == 200 and len(content["pairs"]) == POINTS:
            durations.append(time.perf_counter() - start)
        else:
            faults.append(f"{status}: {str(content)[:200]}")

    def use(client: int) -> None:
        body, kind = make_body(client)
        ask(renew(body, next(NUMBERS)), kind)
        while time.perf_counter() < end:
            ask(renew(body, next(NUMBERS)), kind)

    threads = [threading.Thread(target=use, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return durations, faults


def run(seconds: float = SECONDS, clients: int = CLIENTS, model: str = "default") -> list[Row]:
    """Matches a second of clients at once, and of one alone before and after, by one server."""
    with start_server(model) as (port, process):
        press(port, clients, min(seconds / 4, 5.0))
        settled = measure_peak_memory(process) / 2**20
        before = call(port, "/api/status")[1]["batches"]
        turns = [
            (many, *press_timed(port, many, length))
            for many, length in ((1, seconds / 2), (clients, seconds), (1, seconds / 2))
        ]
        batches = np.subtract(call(port, "/api/status")[1]["batches"], before)
        final, most = measure_memory(process) / 2**20, measure_peak_memory(process) / 2**20
    faults = [fault for turn in turns for fault in turn[3]]
    together, alone = ([one for turn in turns if (turn[0] > 1) == many for one in turn[2]] for many in (True, False))
    rate = len(together) / turns[1][1]
    single = len(alone) / (turns[0][1] + turns[2][1])
    bounded = most - settled < GROWTH
    return [
        {
            "name": f"serve, matches a second of {clients} clients at once beside one by one",
            "size": f"{seconds:g} s, {SIDE} × {SIDE} pixels, {POINTS} points",
            "ours": rate,
            "peer": single,
            "ratio": rate / single if single else None,
            "required": REQUIRED,
            "met": not faults and bounded and rate >= REQUIRED * single > 0,
            "matches": len(together) + len(alone),
            "errors": len(faults),
            "first_error": faults[0] if faults else None,
            "median_seconds": float(np.median(together)) if together else None,
            "longest_seconds": max(together, default=None),
            "median_seconds_one_by_one": float(np.median(alone)) if alone else None,
            "largest_batch": int(np.flatnonzero(batches).max(initial=0)),
            "most_megabytes_in_the_first_batches": settled,
            "most_megabytes": most,
            "megabytes_at_the_end": final,
        }
    ]


def press_timed(port: int, clients: int, seconds: float) -> tuple[float, list[float], list[str]]:
    """As `press`, and how long it took until the last answer."""
    start = time.perf_counter()
    durations, faults = press(port, clients, seconds)
    return time.perf_counter() - start, durations, faults
