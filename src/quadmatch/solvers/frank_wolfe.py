"""Frank–Wolfe under the quadratic constraint: the soft scheme of training, and the hard one of inference."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.frank_wolfe_hard import frank_wolfe_hard
from quadmatch.solvers.projection import project
from quadmatch.solvers.quadratic import clear_padding, line_search, quadratic_gradient, quadratic_objective
from quadmatch.solvers.sinkhorn import sinkhorn

__all__ = ["frank_wolfe", "frank_wolfe_hard", "quadratic_gradient", "quadratic_objective"]


def frank_wolfe(
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    mask: Bool[Tensor, "B N M"] | None = None,
    *,
    start: Float[Tensor, "B N M"] | None = None,
    weight: float = 0.1,
    outer: int = 3,
    inner: int = 5,
    direction: Literal["entropic", "shifted"] = "entropic",
    temperature: float = 0.1,
    step: Literal["schedule", "line_search"] = "schedule",
    detach: bool = False,
    sinkhorn_iterations: int = 20,
) -> Float[Tensor, "B N M"]:
    """Soft assignment that lowers weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X, differentiable in every input.

    Each of `outer` rounds makes `inner` steps X ← X + ε(S − X), then projects X by Sinkhorn (Algorithm 1 of "Deep
    Graph Matching under Quadratic Constraint", CVPR 2021). S is the direction: `entropic` is Sinkhorn of the negative
    gradient at `temperature`; `shifted` is plain Sinkhorn of the negative gradient minus its smallest entry, as in the
    released code. ε is 2/(k+2) with k from 0 in each round, or the exact minimum along the segment. `detach` computes
    directions without gradient, so that it flows through the steps alone. `start` is Sinkhorn of `unary` if not given.
    """
    if outer < 0 or inner < 0 or not 0 <= weight <= 1:
        raise ValueError(
            f"frank_wolfe needs outer, inner >= 0 and 0 <= weight <= 1, got {outer}, {inner} and {weight}"
        )
    if direction not in ("entropic", "shifted") or step not in ("schedule", "line_search"):
        raise ValueError(
            f"direction is 'entropic' or 'shifted', step 'schedule' or 'line_search', got {direction!r} and {step!r}"
        )
    if mask is None:
        mask = torch.ones_like(unary, dtype=torch.bool)
    unary, source, target = clear_padding(unary, source, target, mask)
    if unary.numel() == 0:
        return unary
    if start is None:
        x = sinkhorn(unary, mask, temperature=temperature, iterations=sinkhorn_iterations)
    else:
        x = start.where(mask, 0)
    for _ in range(outer):
        for k in range(inner):
            with torch.no_grad() if detach else nullcontext():
                downhill = -quadratic_gradient(x, unary, source, target, weight=weight)
                s = _find_direction(downhill, mask, direction, temperature, sinkhorn_iterations)
            if step == "schedule":
                x = x + 2 / (k + 2) * (s - x)
            else:
                size = line_search(x, s - x, unary, source, target, weight=weight)
                x = x + size[:, None, None] * (s - x)
        x = project(x, mask, iterations=sinkhorn_iterations)
    return x


def _find_direction(
    downhill: Tensor, mask: Tensor, direction: str, temperature: float, iterations: int
) -> Float[Tensor, "B N M"]:
    if direction == "entropic":
        return sinkhorn(downhill, mask, temperature=temperature, iterations=iterations)
    least = downhill.where(mask, torch.inf).flatten(1).amin(1)[:, None, None]
    return project((downhill - least).where(mask, 0), mask, iterations=iterations)
