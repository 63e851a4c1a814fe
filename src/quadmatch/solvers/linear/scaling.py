"""Row and column scaling of a padded batch of matrices: the loops behind `sinkhorn`.

A scaling turns a positive kernel K into X = diag(u) K diag(v). Each half-step sets u or v so that rows or
columns, together with whatever slack they have, sum to one. The linear loop works on u and v with one
matrix-vector product a half-step; the log loop works on their logarithms f and g and is exact for any range
of the kernel. Both end by shrinking the rows (and columns) that still sum to more than one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.linear.linear_scaling import Side, scale

FAR = -1e30
"""Logarithm of nothing: finite, so that no subtraction makes a NaN, and far below any real value."""


@dataclass(frozen=True)
class Sides:
    """Which rows and columns are real and what slack they have; None: all are, or none has any."""

    rows: Bool[Tensor, "B N 1"] | None
    columns: Bool[Tensor, "B 1 M"] | None
    slack: tuple[Float[Tensor, "B _ 1"], Float[Tensor, "B 1 _"]] | None = None
    """Logarithm of the kernel between a node and being unmatched: of rows, then of columns."""
    surplus: Float[Tensor, "B 1 1"] | None = None
    """Rows minus columns, where a slack row or column of that mass makes the pair square."""


def need_mask(mask: Bool[Tensor, "B N M"] | None) -> Bool[Tensor, "B N M"] | None:
    """The mask, or None where it leaves nothing out: then no step has to care."""
    return mask if mask is None or torch.compiler.is_compiling() or not bool(mask.all()) else None


@dataclass(frozen=True)
class Masses:
    """What rows and columns sum to, with a last row and column that take up the difference of the sizes."""

    rows: Float[Tensor, "B N 1"]
    columns: Float[Tensor, "B 1 M"]
    start: Float[Tensor, "B 1 M"]
    """Scaling of columns to begin with."""


def scale_linear(
    kernel: Float[Tensor, "B N M"], sides: Sides, iterations: int, tolerance: float
) -> Float[Tensor, "B N M"]:
    """Scale a kernel that is zero on padding and whose other values lie between exp(−range) and 1."""
    n, m = kernel.shape[1:]
    if sides.surplus is None:
        left, right = (None, None) if sides.slack is None else (one.exp() for one in sides.slack)
        row, column = _make_side(sides.rows, left, kernel), _make_side(sides.columns, right, kernel)
        start = torch.ones_like(kernel[:, :1, :])
        if left is not None and right is not None:
            start = _begin_slack(right, (kernel / left).amax(1, keepdim=True))
        u, v = scale(kernel, start, row, column, iterations=iterations, tolerance=tolerance)
    else:
        wide, masses, rows, columns = _widen(kernel, sides, 1.0, 0.0)
        row = replace(_make_side(rows, None, kernel), mass=masses.rows)
        column = replace(_make_side(columns, None, kernel), mass=masses.columns)
        u, v = scale(wide, masses.start, row, column, iterations=iterations, tolerance=tolerance)
    return complete(limit(kernel, u[:, :n], v[:, :, :m], sides, columns_too=iterations % 2 == 1), sides)


def _widen(values: Tensor, sides: Sides, full: float, none: float) -> tuple[Tensor, Masses, Tensor, Tensor]:
    """The same with one more row and column; then its masses, and which rows and columns are real."""
    assert sides.surplus is not None
    n, m = values.shape[1:]
    real = torch.ones_like(values[:, :1, :1], dtype=torch.bool)
    rows = real.expand(-1, n, 1) if sides.rows is None else sides.rows
    columns = real.expand(-1, 1, m) if sides.columns is None else sides.columns
    spare_column, spare_row = sides.surplus.clamp(min=0), (-sides.surplus).clamp(min=0)
    ones = torch.ones_like(spare_row)
    # Without anything to take up, the last row or column is padding.
    last_column = (full * ones).where(rows & (spare_column > 0), none)
    last_row = (full * ones).where(columns & (spare_row > 0), none)
    corner = torch.full_like(ones, none)
    wide = torch.cat((torch.cat((values, last_column), 2), torch.cat((last_row, corner), 2)), 1)
    masses = Masses(
        torch.cat((ones.expand(-1, n, 1), spare_row), 1),
        torch.cat((ones.expand(-1, 1, m), spare_column), 2),
        torch.cat((ones.expand(-1, 1, m), spare_column / rows.sum(1, keepdim=True).clamp(min=1)), 2),
    )
    return wide, masses, torch.cat((rows, spare_row > 0), 1), torch.cat((columns, spare_column > 0), 2)


def _make_side(real: Tensor | None, slack: Tensor | None, kernel: Tensor) -> Side:
    if real is None:
        return Side(extra=slack)
    blank = (~real).to(kernel.dtype)
    return Side(extra=blank if slack is None else blank + slack, real=real)


def limit(
    kernel: Float[Tensor, "B N M"],
    u: Float[Tensor, "B N 1"],
    v: Float[Tensor, "B 1 M"],
    sides: Sides,
    *,
    columns_too: bool,
) -> Float[Tensor, "B N M"]:
    """diag(u) K diag(v), rows (and columns, unless they were scaled last) shrunk to sum to at most one."""
    total = torch.bmm(kernel, v.transpose(1, 2))
    u = torch.minimum(u, (total if sides.rows is None else total.where(sides.rows, 1)).reciprocal())
    if columns_too:
        total = torch.bmm(u.transpose(1, 2), kernel)
        v = torch.minimum(v, (total if sides.columns is None else total.where(sides.columns, 1)).reciprocal())
    return u * kernel * v


def scale_log(
    logits: Float[Tensor, "B N M"], sides: Sides, iterations: int, tolerance: float
) -> Float[Tensor, "B N M"]:
    """Scale exp(logits), of any range; logits are FAR on padding."""
    n, m = logits.shape[1:]
    wide, rows, columns = logits, sides.rows, sides.columns
    f, g = torch.zeros_like(logits[:, :, :1]), torch.zeros_like(logits[:, :1, :])
    log_rows, log_columns = f, g
    left, right = sides.slack or (None, None)
    if left is not None and right is not None:
        g = clear(_begin_slack_log(right, (logits - left).amax(1, keepdim=True)), columns)
    elif sides.surplus is not None:
        wide, masses, rows, columns = _widen(logits, sides, 0.0, FAR)
        log_rows, log_columns, g = (_take_log(x) for x in (masses.rows, masses.columns, masses.start))
        f = torch.zeros_like(wide[:, :, :1])
    active: Tensor | None = None
    for half in range(iterations):
        if half % 2 == 0:
            new = log_rows - _add_slack(torch.logsumexp(wide + g, 2, keepdim=True), left)
            new = clear(new, rows)
            if tolerance and half:
                still = (f - new).detach().expm1().abs().amax(1, keepdim=True) > tolerance
                active = still if active is None else active & still
                if not torch.compiler.is_compiling() and not bool(active.any()):
                    break
            f = new if active is None else torch.where(active, new, f)
        else:
            new = log_columns - _add_slack(torch.logsumexp(wide + f, 1, keepdim=True), right)
            new = clear(new, columns)
            g = new if active is None else torch.where(active, new, g)
    f, g = f[:, :n], g[:, :, :m]
    f = torch.minimum(f, clear(-torch.logsumexp(logits + g, 2, keepdim=True), sides.rows))
    if iterations % 2:
        g = torch.minimum(g, clear(-torch.logsumexp(logits + f, 1, keepdim=True), sides.columns))
    return complete((logits + f + g).exp(), sides)


def complete(x: Float[Tensor, "B N M"], sides: Sides) -> Float[Tensor, "B N M"]:
    """Give rows and columns that sum to less than one what they lack: the smaller side then sums to one.

    Rounding of J. Altschuler, J. Weed and P. Rigollet, "Near-linear time approximation algorithms for optimal
    transport via Sinkhorn iteration", NeurIPS 2017. What nodes may keep as slack they keep.
    """
    if sides.slack is not None:
        return x
    rows, columns = (1 - x.sum(2, keepdim=True)).clamp(min=0), (1 - x.sum(1, keepdim=True)).clamp(min=0)
    rows, columns = clear(rows, sides.rows), clear(columns, sides.columns)
    total = torch.maximum(rows.sum(1, keepdim=True), columns.sum(2, keepdim=True))
    return x + rows * (columns / total.where(total > 0, 1))


def _begin_slack(slack: Tensor, peak: Tensor) -> Tensor:
    """Scaling of a column that could only be matched to its best row, or not at all.

    The solution of cpv² + cv = 1 with c the slack of the column and p its largest kernel by slack of the row.
    From an even start such a column, which is the rule at low temperature, would come near it only as 1/t.
    """
    return 2 / (slack + (slack * (slack + 4 * peak)).sqrt())


def _begin_slack_log(slack: Tensor, peak: Tensor) -> Tensor:
    """The same, of logarithms."""
    slack = slack.expand_as(peak)
    root = 0.5 * (slack + torch.logaddexp(slack, peak + math.log(4)))
    return math.log(2) - torch.logaddexp(slack, root)


def _take_log(mass: Tensor) -> Tensor:
    return mass.where(mass > 0, 1).log().where(mass > 0, FAR)


def clear(potential: Tensor, real: Tensor | None) -> Tensor:
    """Zero wherever a node is not real."""
    return potential if real is None else potential.where(real, 0)


def _add_slack(total: Tensor, slack: Tensor | None) -> Tensor:
    return total if slack is None else torch.logaddexp(total, slack)
