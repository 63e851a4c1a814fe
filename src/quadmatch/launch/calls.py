"""Calls of functions shared out over the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from quadmatch.launch.cluster import Cluster, join_cluster
from quadmatch.launch.workers import Job, Workers

Share = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]], Sequence[str]], Iterator[tuple[int, Any]]]
"""Of a function, the arguments of each call and what messages call them: place and result, as they are done."""


class Caller:
    """What a worker has: nothing of its own, since each call brings its function."""

    def describe(self) -> str:
        """Something to say when it is there."""
        return "ready"

    def call(self, function: Callable[..., Any], *arguments: Any) -> tuple[None, Any]:
        """What the function gives."""
        return None, function(*arguments)


@contextmanager
def start_callers(cluster: Cluster, most: int) -> Iterator[Share]:
    """Within: what shares calls out over at most so many workers, which stay until the end.

    The functions must do no harm when they are called twice with the same arguments.
    """
    with join_cluster(cluster, 0) as room, Workers(min(most, room), cluster.count_threads(), Caller) as workers:
        workers.start()
        workers.fill()
        yield partial(_share_out, workers)


def _share_out(
    workers: Workers, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], names: Sequence[str]
) -> Iterator[tuple[int, Any]]:
    left, missing = list(enumerate(calls))[::-1], len(calls)
    while missing:
        while workers.idle and left:
            place, arguments = left.pop()
            workers.give(Job(place, names[place], "call", (function, *arguments)))
        if (done := workers.wait()) is None:
            continue
        place = int(str(done.key))
        if done.lost:
            left.append((place, calls[place]))
        else:
            missing -= 1
            yield place, done.small
