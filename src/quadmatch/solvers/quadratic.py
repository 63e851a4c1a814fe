"""The objective of matching under a quadratic constraint, its gradient, and its course along a segment.

X is an assignment [N, M], A and B are the structures of source and target, weighted and asymmetric as they
like: objective(X) = weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X, smaller is better. With `masked_residual`
the difference counts only where the source has an edge, as in the paper's released code.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def quadratic_objective(
    assignment: Float[Tensor, "B N M"],
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    *,
    weight: float = 0.1,
    masked_residual: bool = False,
) -> Float[Tensor, " B"]:
    """weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X of each pair."""
    residual = source - assignment @ target @ assignment.transpose(1, 2)
    residual = residual.where(source != 0, 0) if masked_residual else residual
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
    """weight·(−2)(UᵀXB + UXBᵀ) − (1 − weight)·unary with U = A − XBXᵀ."""
    there = assignment @ target
    residual = source - there @ assignment.transpose(1, 2)
    residual = residual.where(source != 0, 0) if masked_residual else residual
    back = assignment @ target.transpose(1, 2)
    return -2 * weight * (residual.transpose(1, 2) @ there + residual @ back) - (1 - weight) * unary


def expand_along(
    assignment: Float[Tensor, "B N M"],
    direction: Float[Tensor, "B N M"],
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    *,
    weight: float = 0.1,
    masked_residual: bool = False,
) -> Float[Tensor, "B 5"]:
    """Coefficients of t ↦ objective(X + tD), a quartic, lowest power first."""
    turned, aim = assignment.transpose(1, 2), direction.transpose(1, 2)
    there, moved = assignment @ target, direction @ target
    residual, cross, square = source - there @ turned, moved @ turned + there @ aim, moved @ aim
    if masked_residual:
        residual, cross, square = (part.where(source != 0, 0) for part in (residual, cross, square))

    def inner(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sum((1, 2))

    coefficients = (
        weight * inner(residual, residual) - (1 - weight) * inner(unary, assignment),
        -2 * weight * inner(residual, cross) - (1 - weight) * inner(unary, direction),
        weight * (inner(cross, cross) - 2 * inner(residual, square)),
        2 * weight * inner(cross, square),
        weight * inner(square, square),
    )
    return torch.stack(coefficients, -1)


def clear_padding(
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    mask: Bool[Tensor, "B N M"] | None,
) -> tuple[Float[Tensor, "B N M"], Float[Tensor, "B N N"], Float[Tensor, "B M M"]]:
    """The same problem in one number format, at least single, with zeros wherever a node is not real."""
    kind = torch.promote_types(torch.promote_types(unary.dtype, source.dtype), target.dtype)
    kind = torch.promote_types(kind, torch.float32)
    unary, source, target = unary.to(kind), source.to(kind), target.to(kind)
    if mask is None:
        return unary, source, target
    rows, columns = mask.any(2), mask.any(1)
    return (
        unary.where(mask, 0),
        source.where(rows[:, :, None] & rows[:, None, :], 0),
        target.where(columns[:, :, None] & columns[:, None, :], 0),
    )
