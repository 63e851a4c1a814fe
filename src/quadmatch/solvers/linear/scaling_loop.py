"""Compiled form of the linear scaling, for small pairs and where nobody asks for gradients; it loads the compiler.

A pair of a dozen nodes is scaled in less time than torch takes to be called for one of the forty products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import compile_loop

Matrix = NDArray[np.float64]
Flags = NDArray[np.bool_]


@compile_loop()
def scale_batch(
    kernels: NDArray[np.float64], rows: Flags, columns: Flags, left: Matrix, right: Matrix, slack: bool, iterations: int
) -> None:
    """Scale each kernel in its own place, as `scale_linear` says.

    With `slack`, `left` and `right` are the kernels between a node and being unmatched. Without it a row or a
    column more takes up the difference of the two sides.
    """
    n, m = kernels.shape[1:]
    u, v = np.empty(n), np.empty(m)
    for b in range(len(kernels)):
        kernel, surplus = kernels[b], np.sum(rows[b]) - np.sum(columns[b])
        spare, other = 0.0 if slack else max(surplus, 0), 0.0 if slack else max(-surplus, 0)
        spare_row, spare_column = 0.0, spare / max(np.sum(rows[b]), 1)
        for j in range(m):
            v[j] = 1.0 if columns[b, j] else 0.0
            if slack and columns[b, j]:
                peak = 0.0
                for i in range(n):
                    peak = max(peak, kernel[i, j] / left[b, i])
                v[j] = 2 / (right[b, j] + np.sqrt(right[b, j] * (right[b, j] + 4 * peak)))
        for half in range(iterations + 2):
            # The last two only shrink what sums to more than one; columns that were scaled last do not.
            last = half >= iterations
            if half % 2 == 0 if not last else half == iterations:
                total = 0.0
                for i in range(n):
                    sum_ = 0.0 if last else left[b, i] if slack else spare_column
                    for j in range(m):
                        sum_ += kernel[i, j] * v[j]
                    new = 1 / sum_ if rows[b, i] else 0.0
                    u[i] = min(u[i], new) if last else new
                for j in range(m):
                    total += v[j]
                spare_row = other / total if other > 0 else 0.0
            elif not last or iterations % 2 == 1:
                for j in range(m):
                    sum_ = 0.0 if last else right[b, j] if slack else spare_row
                    for i in range(n):
                        sum_ += u[i] * kernel[i, j]
                    new = 1 / sum_ if columns[b, j] else 0.0
                    v[j] = min(v[j], new) if last else new
                total = 0.0
                for i in range(n):
                    total += u[i]
                spare_column = spare / total if spare > 0 else 0.0
        for i in range(n):
            for j in range(m):
                kernel[i, j] *= u[i] * v[j]
        if not slack:
            _complete(kernel, rows[b], columns[b], u, v)


@compile_loop()
def _complete(x: Matrix, rows: Flags, columns: Flags, u: NDArray[np.float64], v: NDArray[np.float64]) -> None:
    """Give rows and columns that sum to less than one what they lack; `u` and `v` are room for that."""
    n, m = x.shape
    v[:] = 1.0
    for i in range(n):
        u[i] = 1.0
        for j in range(m):
            u[i] -= x[i, j]
            v[j] -= x[i, j]
    lacking = missing = 0.0
    for i in range(n):
        u[i] = max(u[i], 0.0) if rows[i] else 0.0
        lacking += u[i]
    for j in range(m):
        v[j] = max(v[j], 0.0) if columns[j] else 0.0
        missing += v[j]
    total = max(lacking, missing)
    if total > 0:
        for i in range(n):
            for j in range(m):
                x[i, j] += u[i] * (v[j] / total)
