"""Solvers under mixed precision: scores may come in half precision, the iterations must not run in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def leave_autocast(solver: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run a solver in the number format of its inputs, whatever `torch.autocast` says around it."""

    @wraps(solver)
    def solve(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        kinds = [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
        if not kinds:
            return solver(*args, **kwargs)
        with torch.autocast(kinds[0], enabled=False), torch.autocast(kinds[-1], enabled=False):
            return solver(*args, **kwargs)

    return solve
