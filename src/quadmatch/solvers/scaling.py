"""Row and column scaling of a padded batch of matrices: the loops behind `sinkhorn`.

A scaling turns a positive kernel K into X = diag(u) K diag(v). Each half-step sets u or v so that rows or columns,
together with whatever slack they have, sum to one. The linear loop works on u and v with one matrix-vector product
a half-step; the log loop works on their logarithms and is exact for any range of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

FAR = -1e30
"""Logarithm of nothing: finite, so that no subtraction makes a NaN, and far below any real value."""


@dataclass(frozen=True)
class Sides:
    """Which rows and columns are real and what slack they have."""

    rows: Bool[Tensor, "B N 1"]
    columns: Bool[Tensor, "B 1 M"]
    slack: Float[Tensor, "B 1 1"] | None
    """Logarithm of the kernel between a node and being unmatched; None: every node of the smaller side is matched."""
    balance: bool
    """Whether pairs of unequal sizes share a slack row or column that takes up the difference of the sizes."""

    def spare(self, kind: torch.dtype) -> tuple[Float[Tensor, "B 1 1"], Float[Tensor, "B 1 1"]]:
        """Mass of the shared slack column (more rows than columns) and of the shared slack row, 0 if none."""
        surplus = (self.rows.sum(1, keepdim=True) - self.columns.sum(2, keepdim=True)).to(kind)
        return surplus.clamp(min=0), (-surplus).clamp(min=0)


def scale_linear(
    kernel: Float[Tensor, "B N M"], sides: Sides, iterations: int, tolerance: float
) -> Float[Tensor, "B N M"]:
    """Scale a kernel that is zero on padding, with values between exp(−range) and 1."""
    rows, columns = sides.rows.to(kernel.dtype), sides.columns.to(kernel.dtype)
    slack = 0.0 if sides.slack is None else sides.slack.exp()
    extra_row, extra_column = (1 - rows) + slack * rows, (1 - columns) + slack * columns
    spare_column, spare_row = sides.spare(kernel.dtype)
    u, v = torch.ones_like(rows), torch.ones_like(columns)
    active = torch.ones_like(rows[:, :1], dtype=torch.bool)
    transposed = kernel.transpose(1, 2)
    for half in range(iterations):
        if half % 2 == 0:
            x = torch.bmm(kernel, v.transpose(1, 2)) + extra_row
            if sides.balance:
                x = x + spare_column / (u * rows).sum(1, keepdim=True).clamp(min=1e-30)
            if tolerance and half:
                error = (u * x - 1).abs().mul(rows).amax(1, keepdim=True)
                active = active & (error.detach() > tolerance)
            u = torch.where(active, 1 / x, u) if tolerance else 1 / x
        else:
            x = torch.bmm(transposed, u).transpose(1, 2) + extra_column
            if sides.balance:
                x = x + spare_row / (v * columns).sum(2, keepdim=True).clamp(min=1e-30)
            v = torch.where(active, 1 / x, v) if tolerance else 1 / x
        if tolerance and not torch.compiler.is_compiling() and not bool(active.any()):
            break
    u = torch.minimum(u, 1 / (torch.bmm(kernel, v.transpose(1, 2)) + (1 - rows)))
    v = torch.minimum(v, 1 / (torch.bmm(transposed, u).transpose(1, 2) + (1 - columns)))
    return u * kernel * v


def scale_log(
    logits: Float[Tensor, "B N M"], sides: Sides, iterations: int, tolerance: float
) -> Float[Tensor, "B N M"]:
    """Scale exp(logits), of any range; logits are FAR on padding."""
    rows, columns = sides.rows, sides.columns
    slack = None if sides.slack is None else sides.slack
    spare_column, spare_row = (
        torch.where(mass > 0, mass.clamp(min=1).log(), FAR) for mass in sides.spare(logits.dtype)
    )
    f, g = torch.zeros_like(logits[:, :, :1]), torch.zeros_like(logits[:, :1, :])
    active = torch.ones_like(rows[:, :1])
    for half in range(iterations):
        if half % 2 == 0:
            x = torch.logsumexp(logits + g, 2, keepdim=True)
            if slack is not None:
                x = torch.logaddexp(x, slack)
            elif sides.balance:
                x = torch.logaddexp(x, spare_column - torch.logsumexp(f.where(rows, FAR), 1, keepdim=True))
            if tolerance and half:
                error = torch.where(rows, f + x, 0).expm1().abs().amax(1, keepdim=True)
                active = active & (error.detach() > tolerance)
            f = torch.where(rows & active, -x, f)
        else:
            x = torch.logsumexp(logits + f, 1, keepdim=True)
            if slack is not None:
                x = torch.logaddexp(x, slack)
            elif sides.balance:
                x = torch.logaddexp(x, spare_row - torch.logsumexp(g.where(columns, FAR), 2, keepdim=True))
            g = torch.where(columns & active, -x, g)
        if tolerance and not torch.compiler.is_compiling() and not bool(active.any()):
            break
    f = torch.where(rows, torch.minimum(f, -torch.logsumexp(logits + g, 2, keepdim=True)), f)
    g = torch.where(columns, torch.minimum(g, -torch.logsumexp(logits + f, 1, keepdim=True)), g)
    return (logits + f + g).exp()


def normalise(
    values: Float[Tensor, "B N M"], mask: Bool[Tensor, "B N M"] | None = None, *, iterations: int = 20
) -> Float[Tensor, "B N M"]:
    """Plain Sinkhorn, without an exponential, of non-negative values.

    Finds the matrix nearest to `values` in relative entropy whose smaller side sums to one and whose larger side
    sums to at most one; a matrix that does already stays as it is. Zero on padding; scale of a pair is irrelevant.
    """
    if values.numel() == 0:
        return values.clone()
    if mask is None:
        mask = torch.ones_like(values, dtype=torch.bool)
    peak = values.detach().where(mask, 0).amax((1, 2), keepdim=True)
    # The floor keeps a node without any weight defined: it gets an even share.
    kernel = (values / peak.where(peak > 0, 1)).clamp(min=1e-10).where(mask, 0)
    rows, columns = mask.any(2, keepdim=True), mask.any(1, keepdim=True)
    surplus = rows.sum(1, keepdim=True) - columns.sum(2, keepdim=True)
    blank_row, blank_column = (~rows).to(values.dtype), (~columns).to(values.dtype)
    transposed = kernel.transpose(1, 2)
    v = 1 / (kernel.sum(1, keepdim=True) + blank_column)
    v = torch.where(surplus > 0, v, torch.ones_like(v))
    u = torch.ones_like(kernel[:, :, :1])
    for half in range(iterations):
        if half % 2 == 0:
            u = 1 / (torch.bmm(kernel, v.transpose(1, 2)) + blank_row)
            u = torch.where(surplus > 0, u.clamp(max=1), u)
        else:
            v = 1 / (torch.bmm(transposed, u).transpose(1, 2) + blank_column)
            v = torch.where(surplus < 0, v.clamp(max=1), v)
    u = torch.minimum(u, 1 / (torch.bmm(kernel, v.transpose(1, 2)) + blank_row))
    v = torch.minimum(v, 1 / (torch.bmm(transposed, u).transpose(1, 2) + blank_column))
    return u * kernel * v
