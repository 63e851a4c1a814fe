"""Sinkhorn: scores to a soft assignment."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.precision import leave_autocast
from quadmatch.solvers.scaling import FAR, Sides, scale_linear, scale_log

LINEAR_RANGE = {torch.float32: 30.0, torch.float64: 300.0}
"""Range of logits up to which the linear loop, its squares and its gradients stay inside the format."""

LEAST = -1e9
"""Least logit, relative to the largest of its pair: far below what could matter, potentials exact to 1e-7."""


@leave_autocast
def sinkhorn(
    scores: Float[Tensor, "B N M"],
    mask: Bool[Tensor, "B N M"] | None = None,
    *,
    temperature: float = 0.05,
    iterations: int = 20,
    tolerance: float = 0.0,
    slack: float | None = None,
) -> Float[Tensor, "B N M"]:
    """Soft assignment: argmax over X of ⟨scores, X⟩ + temperature · entropy(X), by alternating normalisation.

    The smaller side of a pair sums to one and the larger side to at most one: a slack row or column of mass
    |n − m| takes the rest. With `slack` every node may stay unmatched, and a pair is worth matching where
    its score exceeds `slack`. `iterations` counts normalisations of one side, rows first; a pair stops
    earlier once its row sums are within `tolerance` of their target. `mask` is the outer product of the two
    node masks. Rows and columns never sum to more than one, padding is exactly zero.

    The work is done in log domain, or by an equal linear loop wherever the range of the scores allows it.
    """
    if temperature <= 0 or iterations < 1 or tolerance < 0:
        raise ValueError(
            "sinkhorn needs temperature > 0, iterations >= 1 and tolerance >= 0, "
            f"got {temperature}, {iterations} and {tolerance}"
        )
    if scores.numel() == 0:
        return scores.clone()
    kept = scores if mask is None else scores.where(mask, -math.inf)
    peak, spread = _measure(scores.detach(), kept.detach(), mask, temperature, slack)
    work = _choose_dtype(scores, spread)
    logits = (kept.to(work) - peak.to(work)) / temperature
    between = None if slack is None else ((slack - peak.to(work)) / (2 * temperature)).clamp(min=LEAST)
    sides = _describe(logits, mask, between)
    if spread <= LINEAR_RANGE[work]:
        return scale_linear(logits.exp(), sides, iterations, tolerance).to(scores.dtype)
    logits = logits.clamp(min=LEAST)
    logits = logits if mask is None else logits.where(mask, FAR)
    return scale_log(logits, sides, iterations, tolerance).to(scores.dtype)


def _measure(
    scores: Tensor, kept: Tensor, mask: Tensor | None, temperature: float, slack: float | None
) -> tuple[Float[Tensor, "B 1 1"], float]:
    """Largest score of each pair, and the widest range of logits in the batch (infinite while compiling)."""
    peak = kept.amax((1, 2), keepdim=True)
    low = (scores if mask is None else scores.where(mask, math.inf)).amin((1, 2), keepdim=True)
    if mask is not None:
        # A pair without nodes has no scores; an infinite peak of a real pair is caught below.
        empty = (peak == -math.inf) & (low == math.inf)
        peak, low = peak.where(~empty, 0), low.where(~empty, 0)
    if slack is not None:
        peak, low = peak.clamp(min=slack), low.clamp(max=slack)
    if torch.compiler.is_compiling():
        return peak, math.inf
    spread = float((peak.double() - low.double()).amax()) / temperature
    if not math.isfinite(spread) and not bool((torch.isfinite(peak) & torch.isfinite(low)).all()):
        raise ValueError("scores must be finite, got NaN or infinity where the mask is True")
    return peak, spread


def _choose_dtype(scores: Tensor, spread: float) -> torch.dtype:
    """Double precision wherever single would lose digits: potentials grow with the range of the logits."""
    single = spread <= LINEAR_RANGE[torch.float32] or scores.device.type == "mps"
    return torch.float32 if single and scores.dtype != torch.float64 else torch.float64


def _describe(logits: Tensor, mask: Tensor | None, slack: Tensor | None) -> Sides:
    if mask is None:
        surplus = logits.shape[1] - logits.shape[2]
        return Sides(None, None, slack, None if slack is not None or not surplus else _fill(logits, surplus))
    rows, columns = mask.any(2, keepdim=True), mask.any(1, keepdim=True)
    difference = (rows.sum(1, keepdim=True) - columns.sum(2, keepdim=True)).to(logits.dtype)
    if slack is not None or not (torch.compiler.is_compiling() or bool(difference.any())):
        return Sides(rows, columns, slack, None)
    return Sides(rows, columns, None, difference)


def _fill(like: Tensor, value: int) -> Tensor:
    return torch.full_like(like[:, :1, :1], value)
