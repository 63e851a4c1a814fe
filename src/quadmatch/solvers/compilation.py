"""How loops become machine code: numba, one thread, kept on disk; import it where a loop is about to run."""

from __future__ import annotations

from collections.abc import Callable, Set
from inspect import unwrap
from typing import TypeVar, cast, overload

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])

FINITE = frozenset({"nnan", "nsz", "contract", "reassoc", "arcp"})
"""Finite numbers, and sums in any order: both let loops run as vector instructions."""
FUSED = frozenset({"contract"})
"""A product and a sum may be one instruction; NaN and infinity keep their meaning."""


@overload
def compile_loop(function: Function) -> Function: ...
@overload
def compile_loop(*, fastmath: Set[str] = ...) -> Callable[[Function], Function]: ...
def compile_loop(
    function: Function | None = None, *, fastmath: Set[str] = frozenset()
) -> Function | Callable[[Function], Function]:
    """Compile at the first call, once a machine, or once a process where no folder can be written to.

    Bare, finite numbers and sums in any order are assumed; with brackets, what `fastmath` says, else nothing.
    """

    def compile_function(function: Function, freedom: Set[str]) -> Function:
        # Tests wrap every function in a check of its types, which cannot be compiled.
        plain, allowed = unwrap(function), set(freedom) or False
        try:
            made = njit(plain, cache=True, nogil=True, error_model="numpy", fastmath=allowed)
        except RuntimeError:
            made = njit(plain, nogil=True, error_model="numpy", fastmath=allowed)
        return cast(Function, made)

    if function is not None:
        return compile_function(function, FINITE)
    return lambda function: compile_function(function, fastmath)
