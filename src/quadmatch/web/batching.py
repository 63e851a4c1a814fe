"""What arrives together is matched together, by one worker thread."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from quadmatch.matcher import Matcher
from quadmatch.result import MatchResult
from quadmatch.subjects import Request


class Answer(NamedTuple):
    """One pair, matched with the quadratic constraint and without it."""

    constrained: MatchResult
    free: MatchResult


class Busy(Exception):
    """There is no room in the queue, or no answer in time."""


@dataclass(frozen=True, eq=False)
class Job:
    """A pair that waits for its match."""

    source: Request
    target: Request
    partial: bool = False
    future: Future[Answer] = field(default_factory=Future)


class Batcher:
    """A bounded queue of pairs, and the thread that takes all that wait, up to `largest`, as one batch."""

    def __init__(
        self, matcher: Matcher, *, largest: int = 8, waiting: int = 24, seconds: float = 60.0
    ) -> None:
        self.matcher, self.largest, self.seconds = matcher, largest, seconds
        self.batches: list[int] = [0] * (largest + 1)
        """How many batches had how many pairs."""
        self._jobs: queue.Queue[Job | None] = queue.Queue(waiting)
        self._thread = threading.Thread(target=self._work, name="quadmatch batches", daemon=True)
        self._thread.start()

    async def match(self, source: Request, target: Request, *, partial: bool = False) -> Answer:
        """The match of a pair; a caller that is cancelled, or waits too long, leaves the queue."""
        job = Job(source, target, partial)
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise Busy("Too many pairs are waiting to be matched. Try again in a moment.") from None
        try:
            # A wrapped future takes its cancellation to the job's own, at which the worker drops the job.
            return await asyncio.wait_for(asyncio.wrap_future(job.future), self.seconds)
        except TimeoutError:
            raise Busy(f"No match within {self.seconds:g} s. Try again, or with fewer points.") from None

    def close(self, seconds: float = 10.0) -> None:
        """Finish what waits, then end the thread."""
        try:
            self._jobs.put(None, timeout=seconds)
        except queue.Full:
            return
        self._thread.join(seconds)

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
                answer_jobs(self.matcher, jobs)
            del taken, jobs  # Else the last pictures would stay until the next ones come.


def answer_jobs(matcher: Matcher, jobs: Sequence[Job]) -> None:
    """Set the future of each job; one that fails does so alone."""
    try:
        answers = match_jobs(matcher, jobs)
    except Exception as error:
        if len(jobs) == 1:
            jobs[0].future.set_exception(error)
        else:
            for job in jobs:
                answer_jobs(matcher, [job])
        return
    for job, answer in zip(jobs, answers):
        job.future.set_result(answer)


def match_jobs(matcher: Matcher, jobs: Sequence[Job]) -> list[Answer]:
    """The convolutions of all pictures, and all matches, in one batch."""
    subjects = matcher.prepare([request for job in jobs for request in (job.source, job.target)])
    answers: dict[int, Answer] = {}
    for partial in (False, True):
        places = [place for place, job in enumerate(jobs) if job.partial == partial]
        if not places:
            continue
        sources, targets = [2 * place for place in places], [2 * place + 1 for place in places]
        both = [
            matcher.match_subjects(subjects, sources, targets, partial=partial, constraint=constraint)
            for constraint in (True, False)
        ]
        answers |= {place: Answer(*results) for place, results in zip(places, zip(*both))}
    return [answers[place] for place in range(len(jobs))]
