"""Frank–Wolfe with Hungarian directions: the inference scheme."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.matching import Solution
from quadmatch.solvers.quadratic.objective import choose_format

LONG = 3 * 10**6
"""Sum of cubed sizes from which a batch may take so long that it must hear Ctrl-C."""


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
    segment or 2/(k+2), and the best permutation met on the way is kept: never worse than Hungarian of
    `start` (`start` itself if that is a permutation; `unary` if None). A pair rests once no entry of X
    changes by more than a hundredth. With `partial`, nodes may stay unmatched and unary scores count from
    that value on, also in the objective. `masked_residual` compares edges only where the source has one, as
    the released code does. Each pair is solved by itself, on the processor, in double precision.
    """
    if iterations < 0 or not 0 <= weight <= 1 or step not in ("line_search", "schedule"):
        raise ValueError(
            "frank_wolfe_hard needs iterations >= 0, 0 <= weight <= 1 and step 'line_search' or 'schedule', "
            f"got {iterations}, {weight} and {step!r}"
        )
    from quadmatch.solvers.compilation import call_stoppably
    from quadmatch.solvers.quadratic.hard_descent import Inputs, Options, Outputs, descend_batch

    kind = choose_format(unary, source, target)
    real = torch.ones(unary.shape, dtype=torch.bool) if mask is None else mask.cpu()
    tensors = (unary, source, target, unary if start is None else start)
    nodes, edges, other_edges, first = (
        tensor.detach().to("cpu", torch.float64).contiguous().numpy() for tensor in tensors
    )
    inputs = Inputs(nodes, edges, other_edges, first, real.any(2).numpy(), real.any(1).numpy())
    options = Options(
        float(weight), iterations, partial is not None, float(partial or 0.0), step == "schedule", masked_residual
    )
    chosen, objective = (torch.zeros(s, dtype=torch.float64) for s in (unary.shape, len(unary)))
    taken, rested = torch.zeros(len(unary), dtype=torch.long), torch.zeros(len(unary), dtype=torch.bool)
    outputs = Outputs(chosen.numpy(), objective.numpy(), taken.numpy(), rested.numpy())
    stop, long = np.zeros(1, np.int64), len(unary) * max(unary.shape[1:]) ** 3 > LONG
    wrong = call_stoppably(descend_batch, stop, inputs, start is not None, options, outputs, stop, long=long)
    if wrong >= 0:
        name = ("unary", "source", "target", "start")[wrong]
        raise ValueError(f"{name} must be finite, got NaN or infinity where the mask is True")
    device = unary.device
    return Solution(chosen.to(device, kind), objective.to(device, kind), taken.to(device), rested.to(device))
