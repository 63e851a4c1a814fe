"""Connections that send nothing are let go: how the server is run under uvicorn."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0
"""Seconds in which the header of a request must be here."""
UNHEARD = 32
"""Connections of one client that may be without a whole header; the oldest makes room for one more."""
FAREWELL = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def configure(app: Any) -> uvicorn.Config:
    """How an app is served: quietly, by `WatchedConnection`, and without waiting long when it is to end."""
    return uvicorn.Config(
        app,
        http=WatchedConnection,
        loop="asyncio",  # Where uvloop happens to be installed, too: its connections are not asyncio's.
        log_level="warning",
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=10,
        limit_concurrency=200,
    )


class WatchedConnection(H11Protocol):
    """uvicorn's connection, closed if the header of a request takes longer than `PATIENCE`.

    uvicorn itself waits for ever, so that a few hundred half-sent headers keep everybody out.
    """

    deadline: asyncio.TimerHandle | None = None
    """When this connection is closed; None while a request is in hand."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a header, in place of the oldest that waits where one client has too many."""
        super().connection_made(transport)
        self._watch()
        host = self.client and self.client[0]
        own = [one for one in self.connections if isinstance(one, WatchedConnection) and one.deadline]
        own = [one for one in own if (one.client and one.client[0]) == host]
        if len(own) > UNHEARD:
            min(own, key=lambda one: one.deadline.when() if one.deadline else 0.0).give_up()

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of an unfinished header do not prolong its time."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self.deadline is None:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._forget()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection."""
        self._forget()
        if not self.transport.is_closing():
            self.transport.write(FAREWELL)
            self.transport.close()

    def _watch(self) -> None:
        self.deadline = self.loop.call_later(PATIENCE, self.give_up)

    def _forget(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
