"""Frank–Wolfe with Hungarian directions: the inference scheme."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.hungarian import hungarian
from quadmatch.solvers.line_search import minimise_quartic
from quadmatch.solvers.precision import leave_autocast
from quadmatch.solvers.quadratic import clear_padding, expand_along, quadratic_gradient, quadratic_objective
from quadmatch.solvers.solution import Solution


@leave_autocast
@torch.no_grad()
def frank_wolfe_hard(
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    mask: Bool[Tensor, "B N M"] | None = None,
    *,
    start: Float[Tensor, "B N M"] | None = None,
    weight: float = 0.1,
    iterations: int = 30,
    partial: float | None = None,
    step: Literal["line_search", "schedule"] = "line_search",
    masked_residual: bool = False,
) -> Solution:
    """Permutation that lowers weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X, until X stops changing.

    Directions are Hungarian solutions of the negative gradient, the step is the exact minimum along the
    segment or 2/(k+2), and the best permutation met on the way is kept: the result is never worse than
    Hungarian of `start`, which is `start` itself if that is a permutation (of `unary` if None). With
    `partial`, nodes may stay unmatched and unary scores count from that value on, also in the objective.
    `masked_residual` compares edges only where the source has one, as the released code does.
    """
    if iterations < 0 or not 0 <= weight <= 1 or step not in ("line_search", "schedule"):
        raise ValueError(
            "frank_wolfe_hard needs iterations >= 0, 0 <= weight <= 1 and step 'line_search' or 'schedule', "
            f"got {iterations}, {weight} and {step!r}"
        )
    unary, source, target = clear_padding(unary, source, target, mask)
    if partial is not None:
        unary = unary - partial if mask is None else (unary - partial).where(mask, 0)
    floor = None if partial is None else 0.0
    initial = hungarian(unary if start is None else start, mask, threshold=floor).to(unary.dtype)
    if unary.numel() == 0:
        value = quadratic_objective(initial, unary, source, target, weight=weight)
        return Solution(initial, value, torch.zeros_like(value, dtype=torch.long), value == value)
    real = torch.ones_like(unary, dtype=torch.bool) if mask is None else mask
    x = initial if start is None else start.to(unary.dtype).where(real, 0)
    parts = (x, unary, source, target, real, initial)
    met, last, taken, converged = _descend(parts, weight, iterations, floor, step, masked_residual)
    rounded = hungarian(last, mask, threshold=None if floor is None else 0.5)
    best, least = initial, torch.full_like(x[:, 0, 0], torch.inf)
    for candidate in (initial, met, rounded):
        value = quadratic_objective(
            candidate, unary, source, target, weight=weight, masked_residual=masked_residual
        )
        better = value < least
        best, least = torch.where(better[:, None, None], candidate, best), torch.where(better, value, least)
    return Solution(best, least, taken, converged)


def _descend(
    parts: tuple[Tensor, ...], weight: float, iterations: int, floor: float | None, step: str, masked: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of each pair: best permutation met, last X, steps taken, and whether it came to rest."""
    x, *problem, mask, initial = parts
    best, last = initial.clone(), x.clone()
    value = torch.full_like(x[:, 0, 0], torch.inf)
    taken = torch.zeros(len(x), dtype=torch.long, device=x.device)
    alive = torch.arange(len(x), device=x.device)
    for k in range(iterations):
        downhill = -quadratic_gradient(x, *problem, weight=weight, masked_residual=masked)
        s = hungarian(downhill, mask, threshold=floor)
        quartic = expand_along(x, s - x, *problem, weight=weight, masked_residual=masked)
        worth = quartic.sum(-1)
        better = worth < value[alive]
        best[alive[better]], value[alive[better]] = s[better], worth[better]
        size = minimise_quartic(quartic) if step == "line_search" else torch.full_like(worth, 2 / (k + 2))
        change = size[:, None, None] * (s - x)
        x = x + change
        taken[alive] += 1
        resting = change.abs().amax((1, 2)) <= 1e-6
        if bool(resting.any()):
            # Pairs at rest leave, so that the slowest pair of a batch costs only itself.
            last[alive[resting]] = x[resting]
            x, mask, alive = x[~resting], mask[~resting], alive[~resting]
            problem = [part[~resting] for part in problem]
        if len(alive) == 0:
            break
    last[alive] = x
    converged = torch.ones_like(taken, dtype=torch.bool)
    converged[alive] = False
    return best, last, taken, converged
