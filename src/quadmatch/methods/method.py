"""What the package knows of a method, so that tests and tables need to know nothing more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn


@dataclass(frozen=True)
class Method:
    """A method by its builder and what its paper says of it; calling it builds a head."""

    build: Callable[..., nn.Module]
    """Keywords to a head: a module that maps (pair, source, target) to a Matching."""
    paper: str
    """Who published it, and where."""
    loss: str = "permutation"
    """The loss that its paper trains it with, by its name in `LOSSES`."""
    exact_gradient: bool = True
    """Whether its gradient is that of its output; a black-box solver's is not."""
    small: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of the smallest network that has all its parts, for tests."""

    def __call__(self, **options: Any) -> nn.Module:
        """A head with random parameters."""
        return self.build(**options)
