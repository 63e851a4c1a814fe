"""One file a paper, each only names its parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import nn

from quadmatch.methods.qcdgm import QCDGM

METHODS: dict[str, Callable[..., nn.Module]] = {
    "qcdgm1": partial(QCDGM, "gcn"),
    "qcdgm2": partial(QCDGM, "spline"),
}
"""Head of each method by name; every one is a module that maps (pair, source, target) to a Matching."""

__all__ = ["METHODS", "QCDGM"]
