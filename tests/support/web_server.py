"""What the tests of the page share: a quick model, pictures as files, and servers on free ports.

As a program: a server of two workers, which prints its address.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO

import numpy as np
import torch
from fastapi import FastAPI
from PIL import Image

from quadmatch.datasets.picture import Picture
from quadmatch.features.levels import build_extractor
from quadmatch.features.vgg import VGG16
from quadmatch.layers.quadratic_constraint import QuadraticConstraint
from quadmatch.matcher import Matcher
from quadmatch.methods.dot_product import DotProduct
from quadmatch.own_images.warm_up import warm_up
from quadmatch.web.app import build_app
from quadmatch.web.batching import Answer, Batcher, Job
from quadmatch.web.uploads import Limits

RANDOM = np.random.default_rng(0)
PICTURE = RANDOM.integers(0, 256, (48, 64, 3), dtype=np.uint8)
LIMITS = Limits(bytes=60_000, pixels=40_000, points=50, seconds=60.0)


def build_quick_matcher() -> Matcher:
    """Nothing trained, not even on ImageNet, on pictures of 48 × 48 pixels; all that a first match compiles is there.

    Without that a first answer takes as long as the compiler, which on a busy machine is longer than a server waits.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        state = VGG16("relu5_3").state_dict()
    extractor = build_extractor("frozen", weights=state, precision="float32,contiguous,1", size=48)
    matcher = Matcher(extractor, QuadraticConstraint(DotProduct(temperature=0.02), outer=1), decoding={}).eval()
    warm_up(matcher)
    return matcher


def encode(image: Image.Image | np.ndarray = PICTURE, format: str = "PNG", **options: object) -> bytes:
    """A picture as the bytes of a file."""
    buffer = BytesIO()
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    picture.save(buffer, format, **options)
    return buffer.getvalue()


async def match_by(batcher: Batcher, source: Picture, target: Picture, *, partial: bool = False) -> Answer:
    """The match of a pair by a batcher, as the server asks for it."""
    async with batcher.join(source, target) as place:
        return await batcher.match(Job(source, target, partial), place)


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Return once the condition holds; the time is for machines that have much else to do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not come to hold within {seconds:g} s"
        time.sleep(0.01)


@contextmanager
def run_server(app: object) -> Iterator[str]:
    """The address of a server that runs in a thread."""
    import uvicorn

    from quadmatch.commands.serve import bind
    from quadmatch.web.connections import configure

    with bind("127.0.0.1", 0) as listener:
        server = uvicorn.Server(configure(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started or not thread.is_alive())
        assert server.started, "the server ended before it listened"
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)


def build_quick_app() -> FastAPI:
    """The application for the quick model."""
    return build_app(build_quick_matcher(), LIMITS, model="quick")


def serve_quick(listener: socket.socket, ready: Callable[[], object]) -> None:
    """What each worker of a server does."""
    import uvicorn

    from quadmatch.web.connections import configure

    app = build_quick_app()
    ready()
    uvicorn.Server(configure(app)).run(sockets=[listener])


@contextmanager
def start_workers() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address and the process of a server of two workers."""
    with subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, "the server ended before it listened"
            yield address, process
        finally:
            process.terminate()


if __name__ == "__main__":
    from quadmatch.commands.serve import bind
    from quadmatch.web.workers import run_workers

    with bind("127.0.0.1", 0) as made:
        place = f"http://127.0.0.1:{made.getsockname()[1]}"
        run_workers(2, serve_quick, made, ready=lambda: print(place, flush=True), say=print)
