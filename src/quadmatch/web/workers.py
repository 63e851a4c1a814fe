"""Several processes that answer on one socket, each with a model, a queue and limits of its own."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from multiprocessing.process import BaseProcess
from types import FrameType

from quadmatch.machine import keep_pages

PATIENCE = 20.0
"""Seconds in which a worker must have ended that was asked to: longer than a server waits for those it serves."""

Say = Callable[[str], object]
Serve = Callable[[socket.socket, Callable[[], object]], None]
"""Serves on a socket until the process is asked to end, and calls its second argument when it is about to."""


class WorkerError(OSError):
    """A worker cannot serve."""


@dataclass(frozen=True)
class Worker:
    """A process that serves, and the pipe through which it says that it does, or why it cannot."""

    process: BaseProcess
    pipe: connection.Connection

    def await_ready(self) -> None:
        """Return once it serves."""
        try:
            fault = self.pipe.recv()
        except EOFError:
            self.process.join()
            fault = f"it ended with exit code {self.process.exitcode} before it served"
        if fault is not None:
            raise WorkerError(f"a worker cannot serve: {fault}")


def run_workers(count: int, serve: Serve, listener: socket.socket, *, ready: Callable[[], object], say: Say) -> None:
    """Serve by so many processes until this one is asked to end; who dies is replaced, and all end together.

    `serve` is a function of a module, for it is called in new processes. The first worker begins alone, so that what
    is measured, compiled or fetched once is there for the others.
    """
    crew: list[Worker] = []
    with _ending(crew):
        for group in (1, count - 1):
            new = [_start(serve, listener) for _ in range(group)]
            crew += new
            for worker in new:
                worker.await_ready()
        ready()
        while True:
            ended = connection.wait([worker.process.sentinel for worker in crew])
            for worker in [one for one in crew if one.process.sentinel in ended]:
                worker.process.join()
                say(f"a worker ended with exit code {worker.process.exitcode}; another takes its place")
                crew.remove(worker)
                crew.append(_start(serve, listener))
                crew[-1].await_ready()


def _start(serve: Serve, listener: socket.socket) -> Worker:
    # Not forked: threads of torch do not survive that.
    context = get_context("spawn")
    own, other = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(serve, listener, other), name="quadmatch worker", daemon=True)
    process.start()
    other.close()  # Else its end would not be noticed here.
    return Worker(process, own)


def _work(serve: Serve, listener: socket.socket, pipe: connection.Connection) -> None:
    """What a worker does."""
    keep_pages()
    threading.Thread(target=_end_with_parent, name="watch the parent", daemon=True).start()
    try:
        serve(listener, lambda: pipe.send(None))
    except KeyboardInterrupt:
        pass
    except (OSError, ValueError, ImportError, RuntimeError, MemoryError) as error:
        with suppress(OSError):
            pipe.send(str(error) or type(error).__name__)


def _end_with_parent() -> None:
    """A parent that is killed cannot tell its workers to end."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _ending(crew: list[Worker]) -> Iterator[None]:
    """Within: a signal to end leads out, and afterwards no worker is left."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        for worker in crew:
            worker.process.terminate()
        for worker in crew:
            worker.process.join(PATIENCE)
            worker.process.kill()
        signal.signal(signal.SIGTERM, before)
