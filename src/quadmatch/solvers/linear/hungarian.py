"""Hungarian: scores to the best permutation."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@torch.no_grad()
def hungarian(
    scores: Float[Tensor, "B N M"], mask: Bool[Tensor, "B N M"] | None = None, *, threshold: float | None = None
) -> Float[Tensor, "B N M"]:
    """0/1 assignment that maximises Σ scores∘X, exactly; min(n, m) matches in each pair.

    With `threshold`, the partial assignment that maximises Σ (scores − threshold)∘X: a match that is not
    worth more than the threshold is not made. Nodes that the mask leaves out, in any place, stay unmatched.
    """
    from quadmatch.solvers.linear.batches import solve_stoppably

    if threshold is not None and not math.isfinite(threshold):
        raise ValueError(f"threshold must be finite or None, got {threshold}")
    values = scores.detach().to("cpu", torch.float64).contiguous()
    if mask is None:
        rows, columns = (torch.ones((len(values), size), dtype=torch.bool) for size in values.shape[1:])
    else:
        rows, columns = mask.any(2).cpu(), mask.any(1).cpu()
    chosen = torch.zeros_like(values)
    partial, limit = threshold is not None, float(threshold or 0.0)
    if not solve_stoppably(values.numpy(), rows.numpy(), columns.numpy(), partial, limit, chosen.numpy()):
        raise ValueError("scores must be finite, got NaN or infinity where the mask is True")
    return chosen.to(scores.device, scores.dtype)
