"""Settings that several threads of Python change for a while at once: torch's threads, a network's mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from weakref import WeakKeyDictionary

import torch
from torch import nn


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


_CHANGING = Lock()
_INSIDE: WeakKeyDictionary[nn.Module, tuple[int, bool]] = WeakKeyDictionary()
"""How many threads evaluate a network, and whether the first found it in training."""


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Within: evaluation mode; when the last of several threads leaves, the mode that the first one found."""
    with _CHANGING:
        count, training = _INSIDE.get(network, (0, network.training))
        _INSIDE[network] = count + 1, training
        network.eval()
    try:
        yield
    finally:
        with _CHANGING:
            count, training = _INSIDE.pop(network)
            if count > 1:
                _INSIDE[network] = count - 1, training
            else:
                network.train(training)
