"""What arrives together is matched together, by one worker thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

from quadmatch.datasets.picture import Picture
from quadmatch.datasets.turning import AS_GIVEN, list_tries, take_best
from quadmatch.matcher import Matcher
from quadmatch.own_images.kept import read_condensed
from quadmatch.own_images.recent import MEMORY, Recent
from quadmatch.result import MatchResult
from quadmatch.web.line import Busy, Line, Place
from quadmatch.web.pace import Cost, Pace, measure_cost


class Answer(NamedTuple):
    """One pair, matched with the quadratic constraint and without it."""

    constrained: MatchResult
    free: MatchResult


@dataclass(frozen=True, eq=False)
class Job:
    """A pair that waits for its match."""

    source: Picture
    target: Picture
    partial: bool = False
    matcher: Matcher | None = None
    """Which model matches it; None: the batcher's own."""
    orientation: str = AS_GIVEN
    """How the second picture is turned, or `auto`."""
    future: Future[Answer] = field(default_factory=Future)


class Batcher:
    """A line of pairs, and the thread that takes all that wait, up to `largest`, as one batch."""

    def __init__(
        self, matcher: Matcher, *, largest: int = 8, waiting: int = 24, seconds: float = 60.0, memory: int = MEMORY
    ) -> None:
        self.matcher, self.largest = matcher, largest
        self.line = Line(seconds, waiting)
        self.recent = Recent(memory)
        self.batches: list[int] = [0] * (largest + 1)
        """How many batches had how many pairs."""
        self._paces: WeakKeyDictionary[Matcher, Pace] = WeakKeyDictionary()
        self._jobs: deque[tuple[Job, Place]] = deque()
        self._open, self._changed = True, threading.Condition()
        self._thread = threading.Thread(target=self._work, name="quadmatch batches", daemon=True)
        self._thread.start()

    @asynccontextmanager
    async def join(
        self, source: Picture, target: Picture, *, matcher: Matcher | None = None, orientation: str = AS_GIVEN
    ) -> AsyncIterator[Place]:
        """Within: a place in the line for a pair, of which the pixels are not needed yet."""
        async with self.line.join(measure_cost(source, target, orientation), self.find_pace(matcher)) as place:
            yield place

    async def match(self, job: Job, place: Place) -> Answer:
        """The match of a pair that has a place in the line; a caller that is cancelled leaves the queue."""
        with self._changed:
            if not self._open:
                raise self._say_end()
            self._jobs.append((job, place))
            self._changed.notify()
        try:
            # A wrapped future takes its cancellation to the job's own, at which the worker drops the job.
            return await asyncio.wrap_future(job.future)
        finally:
            with self._changed, suppress(ValueError):  # It was taken.
                self._jobs.remove((job, place))

    def find_pace(self, matcher: Matcher | None) -> Pace:
        """How fast a model was of late; None: the batcher's own."""
        return self._paces.setdefault(matcher or self.matcher, Pace())

    def close(self) -> None:
        """Drop what waits and end the thread, which is not waited for: nobody is left to take its answer."""
        with self._changed:
            self._open = False
            left = [job for job, _ in self._jobs]
            self._jobs.clear()
            self._changed.notify()
        for job in left:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(self._say_end())

    def _say_end(self) -> Busy:
        return Busy("The server is about to end.", self.line.find_wait())

    def _take(self) -> list[tuple[Job, Place]]:
        """What is matched next: as many as there are, but none that makes another late. Nothing once it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or not self._open)
            taken = [self._jobs.popleft()] if self._jobs else []
            while self._jobs and len(taken) < self.largest:
                if not self.line.have_time([place for _, place in (*taken, self._jobs[0])]):
                    break
                taken.append(self._jobs.popleft())
        return [(job, place) for job, place in taken if job.future.set_running_or_notify_cancel()]

    def _work(self) -> None:
        while self._open or self._jobs:
            taken = self._take()
            if taken:
                self.batches[len(taken)] += 1
                self.line.begin([place for _, place in taken])
                self._answer([job for job, _ in taken])
                self.line.end()
            del taken  # Else the last pictures would stay until the next ones come.

    def _answer(self, jobs: Sequence[Job]) -> None:
        for matcher in {id(one): one for one in (job.matcher or self.matcher for job in jobs)}.values():
            own = [job for job in jobs if (job.matcher or self.matcher) is matcher]
            answer_jobs(matcher, own, self.recent, self.find_pace(matcher))


def answer_jobs(matcher: Matcher, jobs: Sequence[Job], recent: Recent, pace: Pace) -> None:
    """Set the future of each job; one that fails does so alone."""
    try:
        answers = match_jobs(matcher, jobs, recent, pace)
    except Exception as error:
        if len(jobs) == 1:
            jobs[0].future.set_exception(error)
        else:
            for job in jobs:
                answer_jobs(matcher, [job], recent, pace)
        return
    for job, answer in zip(jobs, answers):
        job.future.set_result(answer)


def match_jobs(matcher: Matcher, jobs: Sequence[Job], recent: Recent, pace: Pace) -> list[Answer]:
    """The convolutions of all new pictures in one batch, and each pair through the network once for both answers.

    Where few keypoints face many, the pair is also seen whole, and the second picture in each orientation that is
    asked for, as by `Matcher.match_pictures`. What it took is told to the pace.
    """
    begun, made = time.monotonic(), recent.made
    numbers = range(0, 2 * len(jobs), 2)
    pictures = [one for job in jobs for one in (job.source, job.target)]
    views, tries = list_tries(pictures, numbers, [number + 1 for number in numbers], [job.orientation for job in jobs])
    prepared = recent.prepare(matcher, views)
    ready = time.monotonic()
    pace.add(Cost(float(recent.made - made)), ready - begun)
    ways: list[dict[int, MatchResult]] = [{}, {}]
    for poor in (False, True):
        chosen = [number for number, one in enumerate(tries) if jobs[one.pair].partial == poor]
        source, target = [tries[number].source for number in chosen], [tries[number].target for number in chosen]
        both = matcher.match_ways(prepared, source, target, partial=poor, read=read_condensed)
        for found, results in zip(ways, both):
            found |= zip(chosen, results)
    costs = [measure_cost(job.source, job.target, job.orientation)._replace(pictures=0.0) for job in jobs]
    pace.add(Cost(*map(sum, zip(*costs))), time.monotonic() - ready)
    answers = (take_best(tries, [one[number] for number in sorted(one)]) for one in ways)
    return [Answer(*both) for both in zip(*answers)]
