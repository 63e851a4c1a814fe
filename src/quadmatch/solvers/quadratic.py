"""The objective of matching under a quadratic constraint, its gradient and its exact line search."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def _residual(assignment: Tensor, source: Tensor, target: Tensor, masked: bool) -> Tensor:
    residual = source - assignment @ target @ assignment.transpose(1, 2)
    return residual * (source != 0) if masked else residual


def quadratic_objective(
    assignment: Float[Tensor, "B N M"],
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    *,
    weight: float = 0.1,
    masked_residual: bool = False,
) -> Float[Tensor, " B"]:
    """weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X of each pair; smaller is better.

    `masked_residual` counts the residual only where the source has an edge, as the paper's released code does.
    """
    residual = _residual(assignment, source, target, masked_residual)
    return weight * residual.square().sum((1, 2)) - (1 - weight) * (unary * assignment).sum((1, 2))


def quadratic_gradient(
    assignment: Float[Tensor, "B N M"],
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    *,
    weight: float = 0.1,
    masked_residual: bool = False,
) -> Float[Tensor, "B N M"]:
    """weight·(−2)(UᵀXB + UXBᵀ) − (1 − weight)·unary with U = A − XBXᵀ; A and B may be asymmetric."""
    residual = _residual(assignment, source, target, masked_residual)
    forth = residual.transpose(1, 2) @ assignment @ target
    back = residual @ assignment @ target.transpose(1, 2)
    return -2 * weight * (forth + back) - (1 - weight) * unary


def line_search(
    assignment: Float[Tensor, "B N M"],
    direction: Float[Tensor, "B N M"],
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    *,
    weight: float = 0.1,
    masked_residual: bool = False,
) -> Float[Tensor, " B"]:
    """Step t in [0, 1] that minimises the objective of X + tD; a quartic, solved exactly, differentiable."""
    residual = _residual(assignment, source, target, masked_residual)
    cross = direction @ target @ assignment.transpose(1, 2) + assignment @ target @ direction.transpose(1, 2)
    square = direction @ target @ direction.transpose(1, 2)
    if masked_residual:
        cross, square = cross * (source != 0), square * (source != 0)

    def inner(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sum((1, 2))

    slope = -2 * weight * inner(residual, cross) - (1 - weight) * inner(unary, direction)
    curvature = weight * (inner(cross, cross) - 2 * inner(residual, square))
    # Derivative of the quartic, lowest power first.
    cubic = torch.stack(
        (slope, 2 * curvature, 6 * weight * inner(cross, square), 4 * weight * inner(square, square)), -1
    )
    return _minimise(cubic)


def _minimise(cubic: Float[Tensor, "B 4"]) -> Float[Tensor, " B"]:
    """Where in [0, 1] the integral of a cubic is least; one Newton step carries the gradient of the root."""
    with torch.no_grad():
        found = _best_step(cubic.double()).to(cubic.dtype)
    value = cubic[:, 0] + found * (cubic[:, 1] + found * (cubic[:, 2] + found * cubic[:, 3]))
    slope = cubic[:, 1] + found * (2 * cubic[:, 2] + found * 3 * cubic[:, 3])
    inside = (found > 0) & (found < 1) & (slope > 0)
    step = found - value / slope.detach().where(inside, 1)
    return step.clamp(0, 1).where(inside, found)


def _best_step(cubic: Float[Tensor, "B 4"]) -> Float[Tensor, " B"]:
    """Bisect each stretch of [0, 1] on which the cubic is monotone, then compare."""
    a, b, c = 3 * cubic[:, 3], 2 * cubic[:, 2], cubic[:, 1]
    root = (b * b - 4 * a * c).clamp(min=0).sqrt()
    q = -0.5 * (b + torch.where(b >= 0, root, -root))
    turns = torch.stack((q / a.where(a != 0, 1), c / q.where(q != 0, 1)), -1)
    turns = turns.clamp(0, 1).sort(-1).values
    zero, one = torch.zeros_like(turns[:, :1]), torch.ones_like(turns[:, :1])
    left, right = torch.cat((zero, turns), -1), torch.cat((turns, one), -1)
    c0, c1, c2, c3 = (cubic[:, k : k + 1] for k in range(4))
    rising = c0 + right * (c1 + right * (c2 + right * c3)) > c0 + left * (c1 + left * (c2 + left * c3))
    for _ in range(40):
        middle = (left + right) / 2
        above = (c0 + middle * (c1 + middle * (c2 + middle * c3)) > 0) == rising
        left, right = torch.where(above, left, middle), torch.where(above, middle, right)
    points = torch.cat((zero, one, (left + right) / 2), -1)
    worth = points * (c0 + points * (c1 / 2 + points * (c2 / 3 + points * c3 / 4)))
    return points.gather(1, worth.argmin(1, keepdim=True))[:, 0]


def clear_padding(
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    mask: Bool[Tensor, "B N M"],
) -> tuple[Float[Tensor, "B N M"], Float[Tensor, "B N N"], Float[Tensor, "B M M"]]:
    """The same problem with zeros wherever a node is not real."""
    rows, columns = mask.any(2), mask.any(1)
    return (
        unary.where(mask, 0),
        source.where(rows[:, :, None] & rows[:, None, :], 0),
        target.where(columns[:, :, None] & columns[:, None, :], 0),
    )
