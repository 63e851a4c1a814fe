"""Plain Sinkhorn: non-negative values to the nearest soft assignment."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.precision import leave_autocast
from quadmatch.solvers.scaling import Sides, complete

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
    kept = values if mask is None else values.where(mask, 0)
    peak = kept.detach().amax((1, 2), keepdim=True)
    kernel = (kept / peak.where(peak > 0, 1)).clamp(min=FLOOR)
    kernel = kernel if mask is None else kernel.where(mask, 0)
    sides, surplus = _describe(values, mask)
    blank_row = 0.0 if sides.rows is None else (~sides.rows).to(values.dtype)
    blank_column = 0.0 if sides.columns is None else (~sides.columns).to(values.dtype)
    most_row = torch.where(surplus > 0, 1, torch.inf).to(values.dtype)
    most_column = torch.where(surplus < 0, 1, torch.inf).to(values.dtype)
    u, v = torch.ones_like(kernel[:, :, :1]), torch.ones_like(kernel[:, :1, :])
    # The side that is only bounded must wait until the other one has set the level.
    v = torch.where(surplus > 0, (kernel.sum(1, keepdim=True) + blank_column).reciprocal(), v)
    for half in range(iterations):
        if half % 2 == 0:
            u = (torch.bmm(kernel, v.transpose(1, 2)) + blank_row).reciprocal().minimum(most_row)
        else:
            v = (torch.bmm(u.transpose(1, 2), kernel) + blank_column).reciprocal().minimum(most_column)
    u = torch.minimum(u, (torch.bmm(kernel, v.transpose(1, 2)) + blank_row).reciprocal())
    if iterations % 2:
        v = torch.minimum(v, (torch.bmm(u.transpose(1, 2), kernel) + blank_column).reciprocal())
    return complete(u * kernel * v, sides)


def _describe(values: Tensor, mask: Tensor | None) -> tuple[Sides, Tensor]:
    """Which rows and columns are real, and by how many rows each pair exceeds its columns."""
    if mask is None:
        surplus = torch.full((1, 1, 1), values.shape[1] - values.shape[2], device=values.device)
        return Sides(None, None, None, None), surplus
    rows, columns = mask.any(2, keepdim=True), mask.any(1, keepdim=True)
    return Sides(rows, columns, None, None), rows.sum(1, keepdim=True) - columns.sum(2, keepdim=True)
