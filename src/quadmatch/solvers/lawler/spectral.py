"""Spectral matching: the leading eigenvector of an affinity that is never built as a matrix."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.autocast import leave_autocast
from quadmatch.solvers.lawler.operator import AffinityOperator


@leave_autocast
def spectral(
    operator: AffinityOperator,
    mask: Bool[Tensor, "B N M"] | None = None,
    *,
    iterations: int = 50,
    tolerance: float = 1e-5,
) -> Float[Tensor, "B N M"]:
    """Leading eigenvector of K by power iteration from an even start, scaled to a sum of one; differentiable.

    It maximises VᵀKV/VᵀV (M. Leordeanu and M. Hebert, "A spectral technique for correspondence problems using
    pairwise constraints", ICCV 2005). A pair stops once its unit vector moves by less than `tolerance`.
    """
    if iterations < 0 or tolerance < 0:
        raise ValueError(f"spectral needs iterations, tolerance >= 0, got {iterations} and {tolerance}")
    mask = torch.ones_like(operator.unary, dtype=torch.bool) if mask is None else mask
    v = mask.to(operator.unary.dtype)
    v = v / _measure(v).clamp(min=1)
    active = mask.flatten(1).any(1)[:, None, None]
    for _ in range(iterations):
        moved = operator(v).where(mask, 0)
        length = _measure(moved)
        moved = torch.where(active & (length > 0), moved / length.where(length > 0, 1), v)
        if tolerance:
            active = active & (_measure(moved.detach() - v.detach()) >= tolerance)
        v = moved
        if tolerance and not torch.compiler.is_compiling() and not bool(active.any()):
            break
    total = _measure(v, 1)
    return v / total.where(total > 0, 1)


def _measure(v: Tensor, order: int = 2) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(v, order, (1, 2), keepdim=True)
    return length
