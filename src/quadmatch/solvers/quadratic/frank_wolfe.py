"""Frank–Wolfe under the quadratic constraint: the soft, differentiable scheme of training."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.autocast import leave_autocast
from quadmatch.solvers.linear.projection import project
from quadmatch.solvers.linear.scaling import need_mask
from quadmatch.solvers.linear.sinkhorn import sinkhorn
from quadmatch.solvers.quadratic.objective import (
    choose_format,
    clear_padding,
    expand_along,
    minimise_quartic,
    quadratic_gradient,
)


@leave_autocast
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
    """Soft assignment that lowers weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X; differentiable in every input.

    Each of `outer` rounds makes `inner` steps X ← X + ε(S − X), then projects X by Sinkhorn (Algorithm 1 of
    "Deep Graph Matching under Quadratic Constraint", CVPR 2021). S is the direction: `entropic`, Sinkhorn
    of the negative gradient at `temperature`, or `shifted`, plain Sinkhorn of the negative gradient minus
    its least entry, as in the released code. ε is 2/(k+2), k from 0 in each round, or the exact minimum
    along the segment. `detach` finds directions without gradient, which then flows through the steps alone:
    not at all with 2/(k+2), whose first step has length one. `start` is Sinkhorn of `unary` if None.
    """
    if outer < 0 or inner < 0 or not 0 <= weight <= 1:
        raise ValueError(f"frank_wolfe needs outer, inner >= 0 and 0 <= weight <= 1, got {outer}, {inner} and {weight}")
    if direction not in ("entropic", "shifted"):
        raise ValueError(f"direction must be 'entropic' or 'shifted', got {direction!r}")
    if step not in ("schedule", "line_search"):
        raise ValueError(f"step must be 'schedule' or 'line_search', got {step!r}")
    kind, mask = choose_format(unary, source, target), need_mask(mask)
    unary, source, target = clear_padding(unary, source, target, mask, temperature)
    if unary.numel() == 0:
        return unary.clone()
    if start is None:
        x = sinkhorn(unary, mask, temperature=temperature, iterations=sinkhorn_iterations)
    else:
        x = (start if mask is None else start.where(mask, 0)).to(unary.dtype)
    for _ in range(outer):
        for k in range(inner):
            with torch.no_grad() if detach else nullcontext():
                downhill = -quadratic_gradient(x, unary, source, target, weight=weight)
                s = _find_direction(downhill, mask, direction, temperature, sinkhorn_iterations)
            if step == "schedule":
                x = x + 2 / (k + 2) * (s - x)
            else:
                quartic = expand_along(x, s - x, unary, source, target, weight=weight)
                x = x + minimise_quartic(quartic)[:, None, None] * (s - x)
        x = project(x, mask, iterations=sinkhorn_iterations)
    return x.to(kind)


def _find_direction(
    downhill: Tensor, mask: Tensor | None, direction: str, temperature: float, iterations: int
) -> Tensor:
    if direction == "entropic":
        return sinkhorn(downhill, mask, temperature=temperature, iterations=iterations)
    kept = downhill if mask is None else downhill.where(mask, torch.inf)
    shifted = kept - kept.amin((1, 2), keepdim=True)
    return project(shifted if mask is None else shifted.where(mask, 0), mask, iterations=iterations)
