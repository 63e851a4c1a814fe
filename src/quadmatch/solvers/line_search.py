"""Exact line search: the quartic that the quadratic objective is along a segment, and its least point."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

CELLS = 64


def minimise_quartic(quartic: Float[Tensor, "B 5"]) -> Float[Tensor, " B"]:
    """Where in [0, 1] each quartic (lowest power first) is least; differentiable.

    Searching is no place for gradients: the point is found without, and one Newton step then carries the
    gradient of the root of the derivative, which is exact because the derivative is zero there.
    """
    with torch.no_grad():
        found = _search(quartic.detach().double()).to(quartic.dtype)
    slope, curvature = _differentiate(quartic, found)
    inside = (found > 0) & (found < 1) & (curvature.detach() > 0)
    step = found - slope / curvature.detach().where(inside, 1)
    return step.clamp(0, 1).where(inside, found)


def _differentiate(quartic: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """First and second derivative at t."""
    _, a, b, c, d = quartic.unbind(-1)
    slope = a + t * (2 * b + t * (3 * c + t * 4 * d))
    return slope, 2 * b + t * (6 * c + t * 12 * d)


def _search(quartic: Tensor) -> Tensor:
    """Best point of a grid, then Newton's method inside the two cells around it."""
    grid = torch.linspace(0, 1, CELLS + 1, dtype=quartic.dtype, device=quartic.device)
    values = quartic @ grid[None, :] ** torch.arange(5, device=grid.device)[:, None]
    t = grid[values.argmin(1)]
    low, high = (t - 1 / CELLS).clamp(min=0), (t + 1 / CELLS).clamp(max=1)
    for _ in range(4):
        slope, curvature = _differentiate(quartic, t)
        step = torch.where(curvature > 0, slope / curvature.where(curvature > 0, 1), slope.sign())
        t = torch.minimum(torch.maximum(t - step, low), high)
    return t
