"""Ctrl-C while a compiled loop runs: always the exception that everybody expects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hearing_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt where a compiled loop made a SystemError of it.

    Python runs the handler of Ctrl-C while a loop turns its result into arrays; the loop does not look whether that
    failed, and Python then complains about a result that came with an exception.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise
