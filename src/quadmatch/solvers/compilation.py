"""How inner loops are compiled; imported only by modules that are themselves imported when first needed."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def compile_loop(*, fastmath: bool | set[str] = False) -> Callable[[Function], Function]:
    """Compile a function once a machine, or once a process where no folder can be written to."""

    def compile_function(function: Function) -> Function:
        # Tests wrap every function in a check of its types, which cannot be compiled.
        plain = unwrap(function)
        try:
            return cast(Function, njit(plain, cache=True, nogil=True, fastmath=fastmath))
        except RuntimeError:
            return cast(Function, njit(plain, nogil=True, fastmath=fastmath))

    return compile_function
