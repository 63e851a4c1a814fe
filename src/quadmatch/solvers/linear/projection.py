"""Plain Sinkhorn: non-negative values to the nearest soft assignment."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.autocast import leave_autocast
from quadmatch.solvers.linear.linear_scaling import Side, scale
from quadmatch.solvers.linear.scaling import Sides, complete, limit, need_mask

FLOOR = 1e-10
"""Least weight of a match relative to the largest of its pair: a node without weight gets an even share."""


@leave_autocast
def project(
    values: Float[Tensor, "B N M"], mask: Bool[Tensor, "B N M"] | None = None, *, iterations: int = 20
) -> Float[Tensor, "B N M"]:
    """Soft assignment nearest to non-negative `values` in relative entropy.

    The smaller side sums to one, the larger to at most one; a matrix that does already stays as it is. The
    scale of a pair's values is irrelevant, padding is exactly zero. `iterations` counts normalisations of
    one side.
    """
    if values.numel() == 0:
        return values.clone()
    mask = need_mask(mask)
    kept = _bound_gradient(values) if mask is None else _bound_gradient(values).where(mask, 0)
    peak = kept.detach().amax((1, 2), keepdim=True)
    kernel = (kept / peak.where(peak > 0, 1)).clamp(min=FLOOR)
    kernel = kernel if mask is None else kernel.where(mask, 0)
    sides, surplus = _describe(values, mask)
    row, column = _bound(sides.rows, surplus > 0, kernel), _bound(sides.columns, surplus < 0, kernel)
    # The side that is only bounded must wait until the other one has set the level.
    total = kernel.sum(1, keepdim=True)
    start = (total if sides.columns is None else total.where(sides.columns, 1)).reciprocal()
    start = torch.where(surplus > 0, start, torch.ones_like(start))
    u, v = scale(kernel, start, row, column, iterations=iterations)
    return complete(limit(kernel, u, v, sides, columns_too=iterations % 2 == 1), sides)


def _bound_gradient(values: Tensor) -> Tensor:
    """The same values; a derivative by them that is too large for their number format is its largest number."""
    if not values.requires_grad or torch.compiler.is_compiling():
        return values
    same, most = values.view_as(values), torch.finfo(values.dtype).max

    def bound(gradient: Tensor | None) -> Tensor | None:  # None where nothing depends on the values.
        return None if gradient is None else gradient.clamp(-most, most)

    same.register_hook(bound)  # type: ignore[no-untyped-call]
    return same


def _bound(real: Tensor | None, larger: Tensor, kernel: Tensor) -> Side:
    """A side whose nodes may sum to less than one where it is the larger side."""
    most = torch.where(larger, 1, torch.inf).to(kernel.dtype)
    return Side(extra=None if real is None else (~real).to(kernel.dtype), real=real, most=most)


def _describe(values: Tensor, mask: Tensor | None) -> tuple[Sides, Tensor]:
    """Which rows and columns are real, and by how many rows each pair exceeds its columns."""
    if mask is None:
        surplus = torch.full((1, 1, 1), values.shape[1] - values.shape[2], device=values.device)
        return Sides(None, None), surplus
    rows, columns = mask.any(2, keepdim=True), mask.any(1, keepdim=True)
    return Sides(rows, columns), rows.sum(1, keepdim=True) - columns.sum(2, keepdim=True)
