"""Uploads that are on their way: they take no place of those that are worked on, and one that pauses is let go."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from quadmatch.web.uploads import Limits, Refused


@dataclass(eq=False)
class Arrival:
    """An upload that is not whole yet."""

    client: str
    patience: asyncio.Timeout
    pause: float
    end: float
    """When it must be whole, in the seconds of the event loop."""
    heard: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    """When bytes came last."""
    fault: str = ""
    """Why it was sent away."""

    def hear(self) -> None:
        """Bytes came: wait for the next ones."""
        self.heard = asyncio.get_running_loop().time()
        if not self.fault:
            self.patience.reschedule(min(self.heard + self.pause, self.end))

    def send_away(self, fault: str) -> None:
        """Wait no longer."""
        self.fault = fault
        if not self.patience.expired():
            self.patience.reschedule(asyncio.get_running_loop().time())


class Arrivals:
    """All uploads that are on their way."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.open: set[Arrival] = set()

    @asynccontextmanager
    async def watch(self, client: str) -> AsyncIterator[Arrival]:
        """Within: an upload of a client, refused if it pauses or takes too long, or must make room for another."""
        pause, seconds = self.limits.pause, self.limits.seconds
        patience = asyncio.timeout(min(pause, seconds))
        arrival = Arrival(client, patience, pause, asyncio.get_running_loop().time() + seconds)
        self.open.add(arrival)
        try:
            async with patience:
                self._make_room()
                yield arrival
        except TimeoutError:
            late = arrival.heard + pause >= arrival.end
            why = f"The upload took longer than {seconds:g} s." if late else f"No bytes came for {pause:g} s."
            raise Refused(408, "slow-upload", arrival.fault or why) from None
        finally:
            self.open.discard(arrival)

    def _make_room(self) -> None:
        """Where there are too many, send away who was silent for longest, of the client that has the most."""
        if len(self.open) <= self.limits.uploads:
            return
        counts = Counter(one.client for one in self.open)
        crowd = [one for one in self.open if counts[one.client] == max(counts.values())]
        slowest = min(crowd, key=lambda one: one.heard)
        self.open.remove(slowest)
        slowest.send_away("Too many uploads are on their way, and this one was silent for longest.")
