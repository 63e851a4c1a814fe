"""Lists of edges, which are no matrices: recognised, so that an error can say what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ADVICE = (
    "If these are edges, make an adjacency matrix of them: `a = np.zeros((n, n)); a[edges[:, 0], edges[:, 1]] = 1; "
    "a = np.maximum(a, a.T)` with n nodes, or pass `networkx.Graph(edges)`"
)


def advise_on_edges(matrix: NDArray[Any] | Any) -> str:
    """What to do if a matrix looks like edges [E, 2], with weights [E, 3], or [2, E]; else nothing."""
    rows, columns = matrix.shape
    if 2 not in (rows, columns) and columns != 3:
        return ""
    ends = np.asarray(matrix[:2].T if rows == 2 and columns != 2 else matrix[:, :2], dtype=np.float64)
    whole = np.isfinite(ends).all() and (ends == np.floor(ends)).all() and (ends >= 0).all()
    return f". {ADVICE}" if ends.size and whole else ""
