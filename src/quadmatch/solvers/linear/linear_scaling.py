"""The loop that scales rows and columns of a kernel, with one matrix-vector product a half-step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
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

    def invert(self, kernel: Tensor, other: Tensor) -> Tensor:
        """Scaling that makes each sum of the product what it should be."""
        total = torch.bmm(kernel, other) if self.extra is None else torch.baddbmm(self.extra, kernel, other)
        scale = total.reciprocal() if self.mass is None else self.mass / total
        return scale if self.most is None else torch.minimum(scale, self.most)


def scale(
    kernel: Float[Tensor, "B N M"],
    start: Float[Tensor, "B 1 M"],
    rows: Side,
    columns: Side,
    *,
    iterations: int,
    tolerance: float = 0.0,
) -> tuple[Float[Tensor, "B N 1"], Float[Tensor, "B 1 M"]]:
    """u and v of diag(u) K diag(v) after half-steps u = 1/(Kv) and v = 1/(Kᵀu), from v = `start`, rows first.

    A pair whose row sums are within `tolerance` stays as it is, whatever its batch mates still need.
    """
    u, v = torch.ones_like(kernel[:, :, :1]), start
    active: Tensor | None = None
    for half in range(iterations):
        if half % 2 == 0:
            new = rows.invert(kernel, v.transpose(1, 2))
            if tolerance and half:
                active = _find_active(u, new, rows, active, tolerance)
                if not torch.compiler.is_compiling() and not bool(active.any()):
                    break
            u = new if active is None else torch.where(active, new, u)
        else:
            new = columns.invert(u.transpose(1, 2), kernel)
            v = new if active is None else torch.where(active, new, v)
    return u, v


def _find_active(old: Tensor, new: Tensor, side: Side, active: Tensor | None, tolerance: float) -> Tensor:
    """Pairs of which a sum is still off by more than the tolerance, relative to what it should be."""
    error = (old / new.where(new > 0, 1) - 1).detach().abs()
    still = (error if side.real is None else error.where(side.real, 0)).amax(1, keepdim=True) > tolerance
    return still if active is None else active & still
