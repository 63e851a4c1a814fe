"""The line of those who wait for a match: who cannot be served in time is told at once, and when to come back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from quadmatch.web.pace import Cost, Pace

DOUBT = 1.2
"""Who was let in is sent away if the answer is expected later than what is left, times this: estimates vary."""


class Busy(Exception):
    """There is no room, or no answer in time; in `seconds`, as far as can be told, there is."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = max(1.0, seconds)


@dataclass(eq=False)
class Place:
    """One who waits in the line."""

    cost: Cost
    pace: Pace
    """Of the model that is to match it."""
    patience: asyncio.Timeout
    deadline: float
    """When the client is sent away, in the seconds of `time.monotonic`."""
    begun: bool = False
    """Whether its match is being computed."""

    @property
    def expected(self) -> float:
        """Seconds that its match will take."""
        return self.pace.expect(self.cost)


class Line:
    """Who was let in and waits, in order of arrival, and what is being computed.

    The thread that computes calls `begin`, `end` and `have_time`, and the event loop all else.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self.seconds, self.most = seconds, most
        self.places: list[Place] = []
        self._running: tuple[float, Sequence[Place]] | None = None

    @asynccontextmanager
    async def join(self, cost: Cost, pace: Pace) -> AsyncIterator[Place]:
        """Within: a place in the line. `Busy` at once, or as soon as an answer in time is no longer likely."""
        self.check(pace.expect(cost))
        patience = asyncio.timeout(self.seconds)
        place = Place(cost, pace, patience, time.monotonic() + self.seconds)
        try:
            async with patience:
                self.places.append(place)
                try:
                    yield place
                finally:
                    self.places.remove(place)
                    self.review()
        except TimeoutError:
            if not patience.expired():
                raise
            said = "No match" if time.monotonic() >= place.deadline else "A match is no longer likely"
            message = f"{said} within {self.seconds:g} s. Try again later, or with fewer points."
            raise Busy(message, self.find_wait()) from None

    def check(self, own: float = 0.0) -> None:
        """Refuse work of so many seconds if it cannot be done in time; one that comes alone is always tried."""
        wait = self.find_wait()
        if sum(not place.begun for place in self.places) >= self.most:
            raise Busy("Too many pairs are waiting to be matched. Try again later.", wait)
        if wait and wait + own > self.seconds:
            raise Busy(f"Those who came before take about {wait:.0f} s. Try again later.", wait)

    def find_wait(self) -> float:
        """Seconds until all that was let in is expected to be done."""
        left, slowness = self._look()
        return left + slowness * sum(place.expected for place in self.places if not place.begun)

    def review(self) -> None:
        """Send away at once who is expected to be too late by far; those behind gain the time."""
        wait, slowness = self._look()
        now = time.monotonic()
        for place in list(self._list_waiting()):
            own = slowness * place.expected
            if wait + own > DOUBT * (place.deadline - now) and wait:
                place.patience.reschedule(asyncio.get_running_loop().time())
            else:
                wait += own

    def begin(self, places: Sequence[Place]) -> None:
        """The matches of these are computed from now on."""
        self._running = time.monotonic(), places
        for place in places:
            place.begun = True

    def end(self) -> None:
        """Nothing is computed any more."""
        self._running = None

    @staticmethod
    def have_time(places: Sequence[Place]) -> bool:
        """Whether these can be matched together before the first of them has to leave."""
        ready = time.monotonic() + sum(place.expected for place in places)
        return ready <= min(place.deadline for place in places)

    def _list_waiting(self) -> Iterator[Place]:
        return (place for place in self.places if not place.begun and not place.patience.expired())

    def _look(self) -> tuple[float, float]:
        """Seconds that what is being computed still takes, and how much slower than expected it is.

        Once it is late, it is expected to be late by as much again.
        """
        running = self._running
        if running is None:
            return 0.0, 1.0
        took, expected = time.monotonic() - running[0], sum(place.expected for place in running[1])
        return abs(expected - took), max(1.0, took / expected)
