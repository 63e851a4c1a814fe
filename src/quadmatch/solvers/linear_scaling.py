"""The loop that scales rows and columns of a kernel, and its derivative.

X = diag(u) K diag(v): each half-step sets u = 1/(Kv + slack) or v = 1/(Kᵀu + slack). The derivative goes
back through the half-steps with one matrix-vector product each, as the loop itself, and gathers what the
kernel gets from all of them in one product of matrices; only vectors are kept in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True)
class Side:
    """One side of a batch, rows as [B, N, 1] or columns as [B, 1, M]; None where there is nothing to say."""

    extra: Tensor | None = None
    """What each node adds to its sum before it is inverted: its slack; one on padding."""
    mass: Tensor | None = None
    """What each node sums to, one if not given."""
    real: Tensor | None = None
    most: Float[Tensor, "B 1 1"] | None = None
    """Largest scaling factor."""

    def invert(self, total: Tensor) -> Tensor:
        """Scaling that makes each sum what it should be."""
        total = total if self.extra is None else total + self.extra
        scale = total.reciprocal() if self.mass is None else self.mass / total
        return scale if self.most is None else torch.minimum(scale, self.most)

    @cached_property
    def _inverse_mass(self) -> Tensor:
        assert self.mass is not None
        return self.mass.where(self.mass > 0, 1).reciprocal()

    def differentiate(self, scale: Tensor, to_scale: Tensor) -> Tensor:
        """What the sums get from the scaling."""
        to_total = -to_scale * scale * scale
        if self.mass is not None:
            to_total = to_total * self._inverse_mass
        return to_total if self.most is None else to_total.where(scale < self.most, 0)


@dataclass(frozen=True)
class Trail:
    """Every scaling that the loop went through, and which pairs were still moving."""

    u: list[Float[Tensor, "B N 1"]]
    v: list[Float[Tensor, "B 1 M"]]
    active: list[Bool[Tensor, "B 1 1"] | None]


def _walk(
    kernel: Tensor, start: Tensor, rows: Side, columns: Side, iterations: int, tolerance: float
) -> Trail:
    """Half-steps, rows first, until iterations or tolerance; a pair that has converged stays as it is."""
    u, v = torch.ones_like(kernel[:, :, :1]), start
    trail = Trail([u], [v], [])
    active: Tensor | None = None
    for half in range(iterations):
        if half % 2 == 0:
            new = rows.invert(torch.bmm(kernel, v.transpose(1, 2)))
            if tolerance and half:
                active = _find_active(u, new, rows, active, tolerance)
                if not torch.compiler.is_compiling() and not bool(active.any()):
                    break
            u = new if active is None else torch.where(active, new, u)
            trail.u.append(u)
        else:
            new = columns.invert(torch.bmm(u.transpose(1, 2), kernel))
            v = new if active is None else torch.where(active, new, v)
            trail.v.append(v)
        trail.active.append(active)
    return trail


def _find_active(old: Tensor, new: Tensor, side: Side, active: Tensor | None, tolerance: float) -> Tensor:
    """Pairs of which a sum is still off by more than the tolerance, relative to what it should be."""
    error = (old / new.where(new > 0, 1) - 1).detach().abs()
    still = (error if side.real is None else error.where(side.real, 0)).amax(1, keepdim=True) > tolerance
    return still if active is None else active & still


def scale(
    kernel: Float[Tensor, "B N M"],
    start: Float[Tensor, "B 1 M"],
    rows: Side,
    columns: Side,
    *,
    iterations: int,
    tolerance: float = 0.0,
) -> tuple[Float[Tensor, "B N 1"], Float[Tensor, "B 1 M"]]:
    """u and v after so many half-steps from v = `start`; differentiable once in kernel and start."""
    if torch.compiler.is_compiling():
        trail = _walk(kernel, start, rows, columns, iterations, tolerance)
        return trail.u[-1], trail.v[-1]
    found = _Scaling.apply(kernel, start, rows, columns, iterations, tolerance)  # type: ignore[no-untyped-call]
    u, v = found
    return u, v


class _Scaling(torch.autograd.Function):
    """The loop with its derivative written out: recording it takes twice the time and far more memory."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Tensor, start: Tensor, rows: Side, columns: Side, iterations: int, tolerance: float
    ) -> tuple[Tensor, Tensor]:
        """u and v."""
        trail = _walk(kernel, start, rows, columns, iterations, tolerance)
        ctx.save_for_backward(kernel, *trail.u, *trail.v)
        ctx.active, ctx.rows, ctx.columns, ctx.length = trail.active, rows, columns, len(trail.u)
        return trail.u[-1].clone(), trail.v[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, to_u: Any, to_v: Any) -> tuple[Tensor | None, ...]:
        """What kernel and start get."""
        kernel, *saved = ctx.saved_tensors
        us, vs = list(saved[: ctx.length]), list(saved[ctx.length :])
        left, right = [], []
        for half in reversed(range(len(ctx.active))):
            active = ctx.active[half]
            if half % 2 == 0:
                to_total = ctx.rows.differentiate(us.pop(), to_u)
                to_total, to_u = _divide(to_total, to_u, active)
                left.append(to_total)
                right.append(vs[-1])
                to_v = _add(to_v, torch.bmm(to_total.transpose(1, 2), kernel))
            else:
                to_total = ctx.columns.differentiate(vs.pop(), to_v)
                to_total, to_v = _divide(to_total, to_v, active)
                left.append(us[-1])
                right.append(to_total)
                to_u = _add(to_u, torch.bmm(kernel, to_total.transpose(1, 2)))
        to_kernel = torch.bmm(torch.cat(left, 2), torch.cat(right, 1)) if left else torch.zeros_like(kernel)
        return to_kernel, to_v, None, None, None, None


def _divide(to_total: Tensor, to_new: Tensor, active: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """A pair that moved gives its gradient to the sums, one that stayed to the scaling before."""
    if active is None:
        return to_total, None
    return to_total.where(active, 0), to_new.where(~active, 0)


def _add(first: Tensor | None, second: Tensor) -> Tensor:
    return second if first is None else first + second
