"""Row and column scaling of a padded batch of matrices: the loops behind `sinkhorn`.

A scaling turns a positive kernel K into X = diag(u) K diag(v). Each half-step sets u or v so that rows or
columns, together with whatever slack they have, sum to one. The linear loop works on u and v with one
matrix-vector product a half-step; the log loop works on their logarithms f and g and is exact for any range
of the kernel. Both end by shrinking the rows (and columns) that still sum to more than one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

FAR = -1e30
"""Logarithm of nothing: finite, so that no subtraction makes a NaN, and far below any real value."""


@dataclass(frozen=True)
class Sides:
    """Which rows and columns are real and what slack they have; None: all are, or none has any."""

    rows: Bool[Tensor, "B N 1"] | None
    columns: Bool[Tensor, "B 1 M"] | None
    slack: Float[Tensor, "B 1 1"] | None
    """Logarithm of the kernel between a node and being unmatched."""
    surplus: Float[Tensor, "B 1 1"] | None
    """Rows minus columns, where a slack row or column of that mass makes the pair square."""


def scale_linear(
    kernel: Float[Tensor, "B N M"], sides: Sides, iterations: int, tolerance: float
) -> Float[Tensor, "B N M"]:
    """Scale a kernel that is zero on padding and whose other values lie between exp(−range) and 1."""
    blank_row = 0.0 if sides.rows is None else (~sides.rows).to(kernel.dtype)
    blank_column = 0.0 if sides.columns is None else (~sides.columns).to(kernel.dtype)
    slack = 0.0 if sides.slack is None else sides.slack.exp()
    u, v = torch.ones_like(kernel[:, :, :1]), torch.ones_like(kernel[:, :1, :])
    if sides.slack is not None:
        v = _begin_slack(slack, kernel.amax(1, keepdim=True)).expand_as(v)
    active: Tensor | None = None
    for half in range(iterations):
        if half % 2 == 0:
            total = torch.bmm(kernel, v.transpose(1, 2)) + (slack + blank_row)
            if sides.surplus is not None:
                total = total + sides.surplus.clamp(min=0) / _sum_real(u, sides.rows)
            if tolerance and half:
                error = (u * total - 1).detach().abs() - blank_row
                active = _narrow(active, error.amax(1, keepdim=True) > tolerance)
            u = _update(u, total.reciprocal(), active)
        else:
            total = torch.bmm(u.transpose(1, 2), kernel) + (slack + blank_column)
            if sides.surplus is not None:
                total = total + (-sides.surplus).clamp(min=0) / _sum_real(v, sides.columns)
            v = _update(v, total.reciprocal(), active)
        if _all_done(active):
            break
    u = torch.minimum(u, (torch.bmm(kernel, v.transpose(1, 2)) + blank_row).reciprocal())
    if iterations % 2:
        v = torch.minimum(v, (torch.bmm(u.transpose(1, 2), kernel) + blank_column).reciprocal())
    return complete(u * kernel * v, sides)


def scale_log(
    logits: Float[Tensor, "B N M"], sides: Sides, iterations: int, tolerance: float
) -> Float[Tensor, "B N M"]:
    """Scale exp(logits), of any range; logits are FAR on padding."""
    spare_column = spare_row = None
    if sides.surplus is not None:
        spare_column, spare_row = _log_mass(sides.surplus), _log_mass(-sides.surplus)
    f, g = torch.zeros_like(logits[:, :, :1]), torch.zeros_like(logits[:, :1, :])
    if sides.slack is not None:
        peak = logits.amax(1, keepdim=True) + math.log(4)
        both = 0.5 * torch.logaddexp(2 * sides.slack.expand_as(peak), peak)
        g = _clear(math.log(2) - torch.logaddexp(sides.slack.expand_as(both), both), sides.columns)
    active: Tensor | None = None
    for half in range(iterations):
        if half % 2 == 0:
            total = _add_slack(torch.logsumexp(logits + g, 2, keepdim=True), sides.slack)
            if spare_column is not None:
                total = torch.logaddexp(
                    total, spare_column - torch.logsumexp(_hide(f, sides.rows), 1, keepdim=True)
                )
            if tolerance and half:
                error = _clear(f + total, sides.rows).detach().expm1().abs()
                active = _narrow(active, error.amax(1, keepdim=True) > tolerance)
            f = _update(f, _clear(-total, sides.rows), active)
        else:
            total = _add_slack(torch.logsumexp(logits + f, 1, keepdim=True), sides.slack)
            if spare_row is not None:
                total = torch.logaddexp(
                    total, spare_row - torch.logsumexp(_hide(g, sides.columns), 2, keepdim=True)
                )
            g = _update(g, _clear(-total, sides.columns), active)
        if _all_done(active):
            break
    f = torch.minimum(f, _clear(-torch.logsumexp(logits + g, 2, keepdim=True), sides.rows))
    if iterations % 2:
        g = torch.minimum(g, _clear(-torch.logsumexp(logits + f, 1, keepdim=True), sides.columns))
    return complete((logits + f + g).exp(), sides)


def complete(x: Float[Tensor, "B N M"], sides: Sides) -> Float[Tensor, "B N M"]:
    """Give rows and columns that sum to less than one what they lack: the smaller side then sums to one.

    Rounding of J. Altschuler, J. Weed and P. Rigollet, "Near-linear time approximation algorithms for optimal
    transport via Sinkhorn iteration", NeurIPS 2017. What nodes may keep as slack they keep.
    """
    if sides.slack is not None:
        return x
    rows, columns = (1 - x.sum(2, keepdim=True)).clamp(min=0), (1 - x.sum(1, keepdim=True)).clamp(min=0)
    rows, columns = _clear(rows, sides.rows), _clear(columns, sides.columns)
    total = torch.maximum(rows.sum(1, keepdim=True), columns.sum(2, keepdim=True))
    return x + rows * (columns / total.where(total > 0, 1))


def _begin_slack(slack: Tensor | float, peak: Tensor) -> Tensor:
    """Scaling of a column that could only be matched to its best row, or not at all.

    The solution of Kv² + kv = 1. From an even start such a column, which is the rule at low temperature,
    would come near it only as 1/t.
    """
    return 2 / (slack + (slack * slack + 4 * peak).sqrt())


def _sum_real(scale: Tensor, real: Tensor | None) -> Tensor:
    """Sum of a pair's scaling factors over real nodes, as [B, 1, 1]; one where there is none."""
    kept = scale if real is None else scale.where(real, 0)
    total = kept.sum((1, 2), keepdim=True)
    return total.where(total > 0, 1)


def _log_mass(mass: Tensor) -> Tensor:
    return mass.clamp(min=1).log().where(mass > 0, FAR)


def _hide(potential: Tensor, real: Tensor | None) -> Tensor:
    return potential if real is None else potential.where(real, FAR)


def _clear(potential: Tensor, real: Tensor | None) -> Tensor:
    return potential if real is None else potential.where(real, 0)


def _add_slack(total: Tensor, slack: Tensor | None) -> Tensor:
    return total if slack is None else torch.logaddexp(total, slack)


def _narrow(active: Tensor | None, still: Tensor) -> Tensor:
    """A pair that has converged stays as it is: what its batch mates need must not change it."""
    return still if active is None else active & still


def _update(old: Tensor, new: Tensor, active: Tensor | None) -> Tensor:
    return new if active is None else torch.where(active, new, old)


def _all_done(active: Tensor | None) -> bool:
    return active is not None and not torch.compiler.is_compiling() and not bool(active.any())
