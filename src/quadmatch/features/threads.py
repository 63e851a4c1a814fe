"""How many threads torch computes with, changed for a while by several threads of Python at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch


class Threads:
    """A number that each thread of Python has for itself, and a new one takes from whoever set it last.

    So each leaves what was there before the first came of those who are inside at the same time.
    """

    def __init__(self) -> None:
        self.lock, self.inside, self.outside = Lock(), 0, 0

    @contextmanager
    def use(self, count: int) -> Iterator[None]:
        """Within: so many in this thread of Python; afterwards as before."""
        with self.lock:
            self.outside = self.outside if self.inside else torch.get_num_threads()
            self.inside += 1
            torch.set_num_threads(count)
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1
                torch.set_num_threads(self.outside)


THREADS = Threads()
