"""The objective of matching under a quadratic constraint, its gradient, and its course along a segment.

X is an assignment [N, M], A and B are the structures of source and target, weighted and asymmetric as they
like: objective(X) = weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X, smaller is better. Along a segment it is a
quartic, whose least point is the exact line search.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
from jaxtyping import Bool, Float
from torch import Tensor

CELLS = 64
"""Of the grid on which the least point of a quartic is looked for."""
USUAL = (1e-6, 1e6)
"""Largest numbers of matrices whose fourth powers, and gradients of these, stay in the range of single precision."""
SHARP = 1e6
"""Entries of a gradient over the temperature, from which on derivatives of a few steps may leave that range."""


def quadratic_objective(
    assignment: Float[Tensor, "B N M"],
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    *,
    weight: float,
    masked_residual: bool = False,
) -> Float[Tensor, " B"]:
    """weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X of each pair; `masked_residual` counts only edges of A."""
    residual = source - assignment @ target @ assignment.transpose(1, 2)
    residual = residual.where(source != 0, 0) if masked_residual else residual
    return weight * residual.square().sum((1, 2)) - (1 - weight) * (unary * assignment).sum((1, 2))


def quadratic_gradient(
    assignment: Float[Tensor, "B N M"],
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    *,
    weight: float,
    masked_residual: bool = False,
) -> Float[Tensor, "B N M"]:
    """weight·(−2)(UᵀXB + UXBᵀ) − (1 − weight)·unary with U = A − XBXᵀ; masked, U is zero where A is."""
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
    weight: float,
) -> Float[Tensor, "B 5"]:
    """Coefficients of t ↦ objective(X + tD), a quartic, lowest power first."""
    turned, aim = assignment.transpose(1, 2), direction.transpose(1, 2)
    there, moved = assignment @ target, direction @ target
    residual, cross, square = source - there @ turned, moved @ turned + there @ aim, moved @ aim

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


def choose_format(*matrices: Tensor) -> torch.dtype:
    """The widest number format of several matrices, at least single."""
    return reduce(torch.promote_types, (one.dtype for one in matrices), torch.float32)


def clear_padding(
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    mask: Bool[Tensor, "B N M"] | None,
    temperature: float = 1.0,
) -> tuple[Float[Tensor, "B N M"], Float[Tensor, "B N N"], Float[Tensor, "B M M"]]:
    """The same problem in one number format, at least single, with zeros wherever a node is not real.

    The format is double where products of single numbers, or derivatives of steps at such a temperature, would
    vanish or overflow.
    """
    kind = choose_format(unary, source, target)
    matrices = [one.to(kind) for one in (unary, source, target)]
    if mask is not None:
        rows, columns = mask.any(2), mask.any(1)
        real = mask, rows[:, :, None] & rows[:, None, :], columns[:, :, None] & columns[:, None, :]
        matrices = [one.where(there, 0) for one, there in zip(matrices, real)]
    if kind == torch.float32 and unary.device.type != "mps" and not _are_usual(matrices, temperature):
        matrices = [_widen(one) for one in matrices]
    return matrices[0], matrices[1], matrices[2]


def _are_usual(matrices: Sequence[Tensor], temperature: float) -> bool:
    """Whether products of their numbers stay in the range of single precision; not asked while compiling."""
    if torch.compiler.is_compiling() or not all(one.numel() for one in matrices):
        return True
    least, largest = USUAL
    unary, source, target = peaks = torch.stack([one.detach().abs().amax() for one in matrices]).tolist()
    usual = all(peak == 0 or least < peak < largest for peak in peaks)
    return usual and max(unary, source * target) < SHARP * temperature


def _widen(matrix: Tensor) -> Tensor:
    """In double precision; a gradient that is too large for the format it goes back to is its largest number."""
    wide, most = matrix.double(), torch.finfo(matrix.dtype).max
    if wide.requires_grad:
        wide.register_hook(lambda gradient: gradient.clamp(-most, most))  # type: ignore[no-untyped-call]
    return wide
