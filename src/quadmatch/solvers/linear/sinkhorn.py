"""Sinkhorn: scores to a soft assignment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.autocast import leave_autocast
from quadmatch.solvers.linear.scaling import FAR, Sides, clear, need_mask, scale_linear, scale_log

LINEAR_RANGE = {torch.float32: 30.0, torch.float64: 300.0}
"""Range of logits up to which the linear loop, its squares and its gradients stay inside the format."""

LEAST = -1e9
"""Least logit, relative to the largest of its pair: far below what could matter, potentials exact to 1e-7."""

SMALL = 20 * 20
"""Entries of a pair up to which one compiled loop is faster than a library's products."""

Slack = float | Float[Tensor, ""] | Float[Tensor, " B"] | tuple[Float[Tensor, "B N"], Float[Tensor, "B M"]]
"""For all pairs, one a pair, or one a node: rows, then columns."""


@leave_autocast
def sinkhorn(
    scores: Float[Tensor, "B N M"],
    mask: Bool[Tensor, "B N M"] | None = None,
    *,
    temperature: float = 0.05,
    iterations: int = 20,
    tolerance: float = 0.0,
    slack: Slack | None = None,
) -> Float[Tensor, "B N M"]:
    """Soft assignment: argmax over X of ⟨scores, X⟩ + temperature · entropy(X), by alternating normalisation.

    The smaller side of a pair sums to one and the larger side to at most one: a slack row or column of mass
    |n − m| takes the rest. With `slack` every node may stay unmatched: a match is worth making where its score
    exceeds the slack, or the mean of the slacks of its two nodes where each node has its own, because a node
    that stays unmatched brings half its slack. Differentiable in the scores and in the slack. `iterations`
    counts normalisations of one side, rows first; a pair stops earlier once its row sums are within
    `tolerance` of their target. `mask` is the outer product of the two node masks. Rows and columns never
    sum to more than one, padding is exactly zero.

    The work is done in log domain, or by an equal linear loop wherever the range of the scores allows it.
    """
    if temperature <= 0 or iterations < 1 or tolerance < 0:
        raise ValueError(
            "sinkhorn needs temperature > 0, iterations >= 1 and tolerance >= 0, "
            f"got {temperature}, {iterations} and {tolerance}"
        )
    slacks = None if slack is None else _read_slack(slack, scores)
    if scores.numel() == 0:
        return scores.clone()
    mask = need_mask(mask)
    rows, columns = (None, None) if mask is None else (mask.any(2, keepdim=True), mask.any(1, keepdim=True))
    named = {"scores": (scores, mask)}
    if slacks is not None:
        named |= {"slack of rows": (slacks[0], rows), "slack of columns": (slacks[1], columns)}
    peak, spread = _measure(named, temperature)
    work = _choose_dtype(scores, spread)
    kept = scores if mask is None else scores.where(mask, -math.inf)
    logits = (kept.to(work) - peak.to(work)) / temperature
    between = None if slacks is None else _scale_slack(slacks, rows, columns, peak.to(work), temperature)
    sides = Sides(rows, columns, between, None if slacks is not None else _find_surplus(logits, rows, columns))
    if spread <= LINEAR_RANGE[work]:
        kernel = logits.exp()
        if tolerance or not _is_small(kernel, between):
            return scale_linear(kernel, sides, iterations, tolerance).to(scores.dtype)
        return scale_compiled(kernel, sides, iterations).to(scores.dtype)
    logits = logits.clamp(min=LEAST)
    logits = logits if mask is None else logits.where(mask, FAR)
    return scale_log(logits, sides, iterations, tolerance).to(scores.dtype)


def _is_small(kernel: Tensor, slack: tuple[Tensor, Tensor] | None) -> bool:
    """Whether the compiled loop is faster, and allowed: it knows no gradients."""
    learned = kernel.requires_grad or (slack is not None and (slack[0].requires_grad or slack[1].requires_grad))
    return not (learned or torch.compiler.is_compiling()) and kernel.is_cpu and kernel.shape[1:].numel() <= SMALL


def scale_compiled(kernel: Tensor, sides: Sides, iterations: int) -> Tensor:
    """As `scale_linear`, by one call of a compiled loop."""
    from quadmatch.solvers.linear.scaling_loop import scale_batch

    batch, n, m = kernel.shape
    wide, all_real = kernel.to(torch.float64, copy=True), kernel.new_ones(1, dtype=torch.bool)
    rows, columns = (
        (all_real if real is None else real.flatten(1)).expand(batch, size).contiguous().numpy()
        for real, size in ((sides.rows, n), (sides.columns, m))
    )
    slack = [wide.new_empty(batch, size) for size in (n, m)]
    if sides.slack is not None:
        slack = [one.double().exp().flatten(1).expand_as(room).contiguous() for one, room in zip(sides.slack, slack)]
    left, right = (one.numpy() for one in slack)
    scale_batch(wide.numpy(), rows, columns, left, right, sides.slack is not None, iterations)
    return wide


def _read_slack(slack: Slack, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Slack of rows and of columns as tensors that broadcast over the scores."""
    batch, *sizes = scores.shape
    kind = torch.promote_types(scores.dtype, torch.float32)
    parts = slack if isinstance(slack, tuple) else (slack,)
    tensors = [torch.as_tensor(part, dtype=kind, device=scores.device) for part in parts]
    shapes = [list(tensor.shape) for tensor in tensors]
    if shapes == [[batch, size] for size in sizes]:
        return tensors[0][:, :, None], tensors[1][:, None, :]
    if shapes not in ([[]], [[batch]]):
        raise ValueError(
            f"slack must be a number, a tensor of shape [{batch}], or two of shapes [{batch}, {sizes[0]}] and "
            f"[{batch}, {sizes[1]}] for rows and columns; got {' and '.join(map(str, shapes))}"
        )
    whole = tensors[0].reshape(-1, 1, 1)
    return whole, whole


def _scale_slack(
    slacks: tuple[Tensor, Tensor], rows: Tensor | None, columns: Tensor | None, peak: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Logarithms of the kernel between a node and being unmatched; zero on padding, whatever stands there."""
    row, column = (((one.to(peak.dtype) - peak) / (2 * temperature)).clamp(min=LEAST) for one in slacks)
    return clear(row, rows), clear(column, columns)


def _measure(
    named: Mapping[str, tuple[Tensor, Tensor | None]], temperature: float
) -> tuple[Float[Tensor, "B 1 1"], float]:
    """Largest number of each pair, and the widest range of logits in the batch (infinite while compiling)."""
    peaks, lows = [], []
    for values, real in named.values():
        values = values.detach()
        peaks.append((values if real is None else values.where(real, -math.inf)).amax((1, 2), keepdim=True))
        lows.append((values if real is None else values.where(real, math.inf)).amin((1, 2), keepdim=True))
    peak, low = reduce(torch.maximum, peaks), reduce(torch.minimum, lows)
    if named["scores"][1] is not None:
        # A pair without nodes has no scores; an infinite peak of a real pair is caught below.
        empty = (peak == -math.inf) & (low == math.inf)
        peak, low = peak.where(~empty, 0), low.where(~empty, 0)
    if torch.compiler.is_compiling():
        return peak, math.inf
    spread = float((peak.double() - low.double()).amax()) / temperature
    if not math.isfinite(spread) and not bool((torch.isfinite(peak) & torch.isfinite(low)).all()):
        for name, (values, real) in named.items():
            if not bool((torch.isfinite(values) if real is None else torch.isfinite(values) | ~real).all()):
                raise ValueError(f"{name} must be finite, got NaN or infinity where the mask is True")
    return peak, spread


def _choose_dtype(scores: Tensor, spread: float) -> torch.dtype:
    """Double precision wherever single would lose digits: potentials grow with the range of the logits."""
    single = spread <= LINEAR_RANGE[torch.float32] or scores.device.type == "mps"
    return torch.float32 if single and scores.dtype != torch.float64 else torch.float64


def _find_surplus(logits: Tensor, rows: Tensor | None, columns: Tensor | None) -> Tensor | None:
    """Rows minus columns of each pair; None where no pair has any."""
    if rows is None or columns is None:
        surplus = logits.shape[1] - logits.shape[2]
        return torch.full_like(logits[:, :1, :1], surplus) if surplus else None
    difference = (rows.sum(1, keepdim=True) - columns.sum(2, keepdim=True)).to(logits.dtype)
    return difference if torch.compiler.is_compiling() or bool(difference.any()) else None
