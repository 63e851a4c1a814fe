"""How much memory a search will need, said before it begins."""

from __future__ import annotations

import numpy as np

from quadmatch.graphs.inputs import Inputs, to_float64
from quadmatch.machine import measure_available_memory

ALIKE, SEARCHED = 2, 11
"""Matrices of n × m numbers that the largest pair needs, at most: to find an isomorphism, and to search.

Measured with graphs of 1,500 nodes; copies of all graphs, and assignments, come on top."""
LITTLE = 2**26
"""Bytes for which no machine is asked whether it has them."""


def estimate_memory(inputs: Inputs) -> int:
    """Bytes that the search will need beside what the caller holds already."""
    n, m = inputs.sizes
    copies = int((n * n + m * m + n * m * (2 if inputs.unaries is not None else 1)).sum())
    place = int((n * m).argmax())
    return 8 * (copies + (ALIKE if _look_alike(inputs, place) else SEARCHED) * int(n[place] * m[place]))


def _look_alike(inputs: Inputs, place: int) -> bool:
    """Whether a pair may be isomorphic: then the search ends before it needs most."""
    a, b = inputs.sources[place], inputs.targets[place]
    if inputs.unaries is not None or len(a) != len(b):
        return False
    own, other = (np.sort(to_float64(one.sum(0))) for one in (a, b))
    return bool((np.abs(own - other) <= 1e-8 + 1e-5 * np.abs(other)).all())


def check_memory(inputs: Inputs) -> int:
    """The bytes that a search will need; an error where the machine has not so many."""
    needed = estimate_memory(inputs)
    there = measure_available_memory() if needed > LITTLE else None
    if there is not None and needed > there:
        n, m = max(
            ((len(a), len(b)) for a, b in zip(inputs.sources, inputs.targets)), key=lambda size: size[0] * size[1]
        )
        raise MemoryError(
            f"matching graphs of up to {n} and {m} nodes needs about {needed / 2**30:.1f} GB of memory, "
            f"and {there / 2**30:.1f} GB are free: match parts of the graphs, fewer pairs in one call, "
            "or use a machine with more memory"
        )
    return needed
