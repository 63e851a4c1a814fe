"""Calls of one function shared out over the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quadmatch.launch.cluster import Cluster, join_cluster
from quadmatch.launch.workers import Job, Workers


class Caller:
    """What a worker has: the function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def describe(self) -> str:
        """Something to say when it is there."""
        return "ready"

    def call(self, *arguments: Any) -> tuple[None, Any]:
        """What the function gives."""
        return None, self.function(*arguments)


def call_on_ray(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], names: Sequence[str], cluster: Cluster
) -> Iterator[tuple[int, Any]]:
    """Place and result of each call, as they are done; the function must do no harm when it is called twice.

    `names` are what messages call them.
    """
    if not calls:
        return
    with join_cluster(cluster, 0) as most:
        count = min(most, len(calls))
        with Workers(count, cluster.count_threads(), Caller, function) as workers:
            yield from _share_out(workers, calls, names)


def _share_out(workers: Workers, calls: Sequence[tuple[Any, ...]], names: Sequence[str]) -> Iterator[tuple[int, Any]]:
    left, missing = list(enumerate(calls))[::-1], len(calls)
    workers.start()
    workers.fill()
    while missing:
        while workers.idle and left:
            place, arguments = left.pop()
            workers.give(Job(place, names[place], "call", arguments))
        if (done := workers.wait()) is None:
            continue
        place = int(str(done.key))
        if done.lost:
            left.append((place, calls[place]))
        else:
            missing -= 1
            yield place, done.small
