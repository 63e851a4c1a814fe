"""What arrives together is matched together, by one worker thread."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from quadmatch.datasets.picture import Picture
from quadmatch.datasets.turning import AS_GIVEN, list_tries, take_best
from quadmatch.matcher import Matcher
from quadmatch.own_images.kept import read_condensed
from quadmatch.own_images.recent import MEMORY, Recent
from quadmatch.result import MatchResult


class Answer(NamedTuple):
    """One pair, matched with the quadratic constraint and without it."""

    constrained: MatchResult
    free: MatchResult


class Busy(Exception):
    """There is no room in the queue, or no answer in time; `seconds` later there may be."""

    def __init__(self, message: str, seconds: float = 2.0) -> None:
        super().__init__(message)
        self.seconds = seconds


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
    """A bounded queue of pairs, and the thread that takes all that wait, up to `largest`, as one batch."""

    def __init__(
        self, matcher: Matcher, *, largest: int = 8, waiting: int = 24, seconds: float = 60.0, memory: int = MEMORY
    ) -> None:
        self.matcher, self.largest, self.seconds = matcher, largest, seconds
        self.recent = Recent(memory)
        self.batches: list[int] = [0] * (largest + 1)
        """How many batches had how many pairs."""
        self.pace = 0.0
        """Seconds that a pair took of late."""
        self._jobs: queue.Queue[Job | None] = queue.Queue(waiting)
        self._thread = threading.Thread(target=self._work, name="quadmatch batches", daemon=True)
        self._thread.start()

    async def match(
        self,
        source: Picture,
        target: Picture,
        *,
        partial: bool = False,
        matcher: Matcher | None = None,
        orientation: str = AS_GIVEN,
    ) -> Answer:
        """The match of a pair; a caller that is cancelled, or waits too long, leaves the queue."""
        job = Job(source, target, partial, matcher, orientation)
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise Busy("Too many pairs are waiting to be matched. Try again in a moment.") from None
        try:
            # A wrapped future takes its cancellation to the job's own, at which the worker drops the job.
            return await asyncio.wait_for(asyncio.wrap_future(job.future), self.seconds)
        except TimeoutError:
            raise Busy(f"No match within {self.seconds:g} s. Try again, or with fewer points.") from None

    def close(self) -> None:
        """Drop what waits and end the thread, which is not waited for: nobody is left to take its answer."""
        with suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None and job.future.set_running_or_notify_cancel():
                    job.future.set_exception(Busy("The server is about to end."))
        self._jobs.put(None)

    def _work(self) -> None:
        open_ = True
        while open_:
            taken = [self._jobs.get()]
            while len(taken) < self.largest and taken[-1] is not None:
                try:
                    taken.append(self._jobs.get_nowait())
                except queue.Empty:
                    break
            open_ = taken[-1] is not None
            jobs = [job for job in taken if job is not None and job.future.set_running_or_notify_cancel()]
            if jobs:
                self.batches[len(jobs)] += 1
                self._answer(jobs)
            del taken, jobs  # Else the last pictures would stay until the next ones come.

    def _answer(self, jobs: Sequence[Job]) -> None:
        begun = time.monotonic()
        for matcher in {id(one): one for one in (job.matcher or self.matcher for job in jobs)}.values():
            own = [job for job in jobs if (job.matcher or self.matcher) is matcher]
            answer_jobs(matcher, own, self.recent)
        took = (time.monotonic() - begun) / len(jobs)
        self.pace = (self.pace + took) / 2 if self.pace else took


def answer_jobs(matcher: Matcher, jobs: Sequence[Job], recent: Recent) -> None:
    """Set the future of each job; one that fails does so alone."""
    try:
        answers = match_jobs(matcher, jobs, recent)
    except Exception as error:
        if len(jobs) == 1:
            jobs[0].future.set_exception(error)
        else:
            for job in jobs:
                answer_jobs(matcher, [job], recent)
        return
    for job, answer in zip(jobs, answers):
        job.future.set_result(answer)


def match_jobs(matcher: Matcher, jobs: Sequence[Job], recent: Recent) -> list[Answer]:
    """The convolutions of all new pictures in one batch, and each pair through the network once for both answers.

    Where few keypoints face many, the pair is also seen whole, and the second picture in each orientation that is
    asked for, as by `Matcher.match_pictures`.
    """
    numbers = range(0, 2 * len(jobs), 2)
    pictures = [one for job in jobs for one in (job.source, job.target)]
    views, tries = list_tries(pictures, numbers, [number + 1 for number in numbers], [job.orientation for job in jobs])
    prepared = recent.prepare(matcher, views)
    ways: list[dict[int, MatchResult]] = [{}, {}]
    for poor in (False, True):
        chosen = [number for number, one in enumerate(tries) if jobs[one.pair].partial == poor]
        source, target = [tries[number].source for number in chosen], [tries[number].target for number in chosen]
        both = matcher.match_ways(prepared, source, target, partial=poor, read=read_condensed)
        for found, results in zip(ways, both):
            found |= zip(chosen, results)
    answers = (take_best(tries, [one[number] for number in sorted(one)]) for one in ways)
    return [Answer(*both) for both in zip(*answers)]
