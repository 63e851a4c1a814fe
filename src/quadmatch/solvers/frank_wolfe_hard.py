"""Frank–Wolfe with Hungarian directions: the inference scheme."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.hungarian import hungarian
from quadmatch.solvers.quadratic import clear_padding, line_search, quadratic_gradient, quadratic_objective
from quadmatch.solvers.solution import Solution


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
    masked_residual: bool = False,
) -> Solution:
    """Permutation that lowers weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X, until X stops changing.

    Directions are Hungarian solutions of the negative gradient, the step is the exact minimum along the segment, and
    the best permutation met on the way is kept: the result is never worse than Hungarian of `start` (of `unary` if
    not given). With `partial`, nodes may stay unmatched: that is the score below which a match is not worth having.
    `masked_residual` compares edges only where the source has one, as the released code does.
    """
    if mask is None:
        mask = torch.ones_like(unary, dtype=torch.bool)
    unary, source, target = clear_padding(unary, source, target, mask)
    x = unary if start is None else start.where(mask, 0)
    best = hungarian(x, mask, threshold=partial if start is None else None)
    x = best.clone() if start is None else x
    if partial is not None:
        unary = (unary - partial).where(mask, 0)
        partial = 0.0
    common = {"weight": weight, "masked_residual": masked_residual}
    value = quadratic_objective(best, unary, source, target, **common)  # type: ignore[arg-type]
    taken = torch.zeros(len(x), dtype=torch.long, device=x.device)
    alive = torch.arange(len(x), device=x.device)
    for _ in range(iterations):
        if len(alive) == 0:
            break
        a, b, c, m, here = source[alive], target[alive], unary[alive], mask[alive], x[alive]
        downhill = -quadratic_gradient(here, c, a, b, **common)  # type: ignore[arg-type]
        s = hungarian(downhill, m, threshold=partial)
        worth = quadratic_objective(s, c, a, b, **common)  # type: ignore[arg-type]
        size = line_search(here, s - here, c, a, b, **common)[:, None, None]  # type: ignore[arg-type]
        x[alive] = moved = here + size * (s - here)
        better = worth < value[alive]
        value[alive[better]], best[alive[better]] = worth[better], s[better]
        taken[alive] += 1
        alive = alive[((moved - here).abs() > 1e-6).any(2).any(1)]
    final = hungarian(x, mask, threshold=None if partial is None else 0.5)
    worth = quadratic_objective(final, unary, source, target, **common)  # type: ignore[arg-type]
    better = worth < value
    best = torch.where(better[:, None, None], final, best)
    converged = torch.ones_like(taken, dtype=torch.bool)
    converged[alive] = False
    return Solution(best, torch.where(better, worth, value), taken, converged)
