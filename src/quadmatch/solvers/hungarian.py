"""Hungarian: scores to the best permutation."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@torch.no_grad()
def hungarian(
    scores: Float[Tensor, "B N M"],
    mask: Bool[Tensor, "B N M"] | None = None,
    *,
    threshold: float | None = None,
) -> Float[Tensor, "B N M"]:
    """0/1 assignment that maximises Σ scores∘X; min(n, m) matches in each pair.

    With `threshold`, the partial assignment that maximises Σ (scores − threshold)∘X: a pair that is not worth more
    than the threshold stays unmatched. Nodes that the mask leaves out, in any place, stay unmatched.
    """
    from scipy.optimize import linear_sum_assignment

    values = scores.detach().to("cpu", torch.float64)
    allowed = torch.ones_like(values, dtype=torch.bool) if mask is None else mask.cpu()
    if not bool(torch.isfinite(values[allowed]).all()):
        raise ValueError("scores must be finite, got NaN or infinity where the mask is True")
    result = torch.zeros_like(values)
    for index in range(len(values)):
        rows, columns = allowed[index].any(1).nonzero()[:, 0], allowed[index].any(0).nonzero()[:, 0]
        weights = values[index][rows][:, columns]
        gains = weights if threshold is None else (weights - threshold).clamp(min=0)
        i, j = (torch.from_numpy(k) for k in linear_sum_assignment(gains.numpy(), maximize=True))
        keep = torch.ones_like(weights[i, j]) if threshold is None else (weights[i, j] > threshold).double()
        result[index, rows[i], columns[j]] = keep
    return result.to(scores.device, scores.dtype)
