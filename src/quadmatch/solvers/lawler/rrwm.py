"""Reweighted random walk matching on an affinity that is never built as a matrix."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.autocast import leave_autocast
from quadmatch.solvers.lawler.operator import AffinityOperator
from quadmatch.solvers.linear.sinkhorn import sinkhorn


@leave_autocast
def rrwm(
    operator: AffinityOperator,
    mask: Bool[Tensor, "B N M"] | None = None,
    *,
    alpha: float = 0.2,
    beta: float = 30.0,
    iterations: int = 50,
    sinkhorn_iterations: int = 20,
    tolerance: float = 1e-5,
) -> Float[Tensor, "B N M"]:
    """How often a random walk on the association graph of two graphs visits each pair: sums to one.

    Each step walks, V ← K·V/‖K·V‖₁, then jumps with probability `alpha` to the one-to-one reweighting of
    where it is, Sinkhorn of beta·V/max V (M. Cho, J. Lee and K. M. Lee, "Reweighted random walks for graph
    matching", ECCV 2010). Affinities must not be negative. A pair stops once V moves by less than
    `tolerance` times its length.
    """
    if not 0 <= alpha <= 1 or beta <= 0 or iterations < 0 or tolerance < 0:
        raise ValueError(
            "rrwm needs 0 <= alpha <= 1, beta > 0, iterations >= 0 and tolerance >= 0, "
            f"got {alpha}, {beta}, {iterations} and {tolerance}"
        )
    if operator.unary.numel() == 0:
        return operator.unary.clone()
    v = _share(torch.ones_like(operator.unary) if mask is None else mask.to(operator.unary.dtype))
    active = (v > 0).flatten(1).any(1)[:, None, None]
    for _ in range(iterations):
        walked = operator(v)
        walked = _share(walked if mask is None else walked.where(mask, 0))
        peak = walked.amax((1, 2), keepdim=True)
        # No affinity at all: nothing to prefer, so the walk stays where it is.
        odds = walked / peak.where(peak > 0, 1)
        jumped = sinkhorn(odds, mask, temperature=1 / beta, iterations=sinkhorn_iterations)
        moved = _share(alpha * jumped + (1 - alpha) * walked)
        if tolerance:
            moved = torch.where(active, moved, v)
            change, length = (torch.linalg.vector_norm(x.detach(), 2, (1, 2), keepdim=True) for x in (moved - v, v))
            active = active & (change >= tolerance * length)
        v = moved
        if tolerance and not torch.compiler.is_compiling() and not bool(active.any()):
            break
    return v


def _share(v: Tensor) -> Tensor:
    """Scaled so that the entries of each pair sum to one; zeros stay zeros."""
    total = v.sum((1, 2), keepdim=True)
    return v / total.where(total > 0, 1)
