"""An amount that several share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Budget:
    """Amounts that may be held together; who asks for more waits."""

    def __init__(self, total: int) -> None:
        self.total, self.held = total, 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, amount: int) -> AsyncIterator[None]:
        """Wait until the amount is free, and hold it."""
        amount = min(amount, self.total)
        async with self._changed:
            await self._changed.wait_for(lambda: self.held + amount <= self.total)
            self.held += amount
        try:
            yield
        finally:
            async with self._changed:
                self.held -= amount
                self._changed.notify_all()
