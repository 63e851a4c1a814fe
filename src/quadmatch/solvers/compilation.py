"""How loops become machine code: numba, one thread, kept on disk; import it where a loop is about to run."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from inspect import unwrap
from typing import Any, TypeVar, cast, overload

import numpy as np
from numba import njit
from numba.core import event
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., object])
Result = TypeVar("Result")

FINITE = frozenset({"nnan", "nsz", "contract", "reassoc", "arcp"})
"""Finite numbers, and sums in any order: both let loops run as vector instructions."""
FUSED = frozenset({"contract"})
"""A product and a sum may be one instruction; NaN and infinity keep their meaning."""

SHORT = 0.7
"""Processor seconds of compilation that nobody is told about: a whole search takes several."""


class CompilationNotice(event.Listener):
    """Says once, on stderr, that a call waits for the compiler; loops that are loaded from disk cause no event."""

    def __init__(self) -> None:
        self.spent, self.begun, self.depth, self.said = 0.0, 0.0, 0, False

    def on_start(self, event: event.Event) -> None:
        """A loop begins to be compiled, perhaps for the sake of another one that is."""
        if not event.data["dispatcher"].py_func.__module__.startswith("quadmatch."):
            return
        if self.depth == 0:
            self.begun = time.process_time()
        self.depth += 1
        if not self.said and self.spent + time.process_time() - self.begun > SHORT:
            self.said = True
            text = "quadmatch: compiling its loops, once on this machine (5 to 15 s of processor time) …"
            print(text, file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        """A loop is compiled."""
        if event.data["dispatcher"].py_func.__module__.startswith("quadmatch."):
            self.depth -= 1
            if self.depth == 0:
                self.spent += time.process_time() - self.begun


event.register("numba:compile", CompilationNotice())  # type: ignore[no-untyped-call]


@overload
def compile_loop(function: Function) -> Function: ...
@overload
def compile_loop(*, fastmath: Set[str] = ...) -> Callable[[Function], Function]: ...
def compile_loop(
    function: Function | None = None, *, fastmath: Set[str] = frozenset()
) -> Function | Callable[[Function], Function]:
    """Compile at the first call, once a machine: kept beside the file or, where that folder is read-only, in the
    user's cache folder (`NUMBA_CACHE_DIR` names another); once a process where no folder can be written to.

    Bare, finite numbers and sums in any order are assumed; with brackets, what `fastmath` says, else nothing.
    """

    def compile_function(function: Function, freedom: Set[str]) -> Function:
        # Tests wrap every function in a check of its types, which cannot be compiled.
        plain, allowed = unwrap(function), set(freedom) or False
        # No loop is ever handed to C, and a wrapper for that is a tenth of a short loop's compilation.
        options: Any = {"nogil": True, "error_model": "numpy", "fastmath": allowed, "no_cfunc_wrapper": True}
        try:
            made = njit(plain, cache=True, **options)
        except RuntimeError:
            made = njit(plain, **options)
        return cast(Function, made)

    if function is not None:
        return compile_function(function, FINITE)
    return lambda function: compile_function(function, fastmath)


def run_uncompiled(loop: Function) -> Function:
    """The Python function that a loop was compiled from; what it calls stays compiled."""
    return cast(Function, getattr(loop, "py_func", loop))


def call_stoppably(
    loop: Callable[..., Result], stop: NDArray[np.int64], *arguments: object, long: bool = True
) -> Result:
    """Call a compiled loop so that Ctrl-C ends it: the loop looks at `stop[0]` from time to time.

    Python tells the main thread of Ctrl-C only between two of its own instructions, and a compiled loop is
    one of them. So a `long` loop runs in a thread of its own, which the main thread waits for.
    """
    if not long or threading.current_thread() is not threading.main_thread():
        return loop(*arguments)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(loop, *arguments)
        try:
            return work.result()
        except KeyboardInterrupt:
            stop[0] = 1
            raise


def call_abandoning(function: Callable[..., Result], *arguments: object, long: bool = True) -> Result:
    """Call what cannot be told to stop so that Ctrl-C is heard: the call is left behind and ends by itself.

    It must be a function of another library that runs without Python's lock. A program that ends does not wait for it.
    """
    if not long or threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    work: Future[Result] = Future()

    def run() -> None:
        try:
            work.set_result(function(*arguments))
        except BaseException as error:
            work.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return work.result()


@contextmanager
def stopping(deadline: float, stop: NDArray[np.int64] | None = None) -> Iterator[NDArray[np.int64]]:
    """A flag that is set at the deadline, a value of `time.perf_counter()`; a flag that is there may be given.

    Loops run without Python's lock, so that a timer can set it while they do.
    """
    stop = np.zeros(1, np.int64) if stop is None else stop
    timer = threading.Timer(max(0.0, min(deadline - time.perf_counter(), 1e6)), stop.fill, (1,))
    if deadline < np.inf:
        timer.start()
    try:
        yield stop
    finally:
        timer.cancel()
