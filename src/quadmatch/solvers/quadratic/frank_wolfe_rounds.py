"""Frank–Wolfe with Hungarian directions as it is published: rounds of fixed steps, each rounded, the last one kept."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.matching import Solution
from quadmatch.solvers.linear.hungarian import hungarian
from quadmatch.solvers.quadratic.objective import clear_padding, quadratic_gradient, quadratic_objective


@torch.no_grad()
def frank_wolfe_rounds(
    unary: Float[Tensor, "B N M"],
    source: Float[Tensor, "B N N"],
    target: Float[Tensor, "B M M"],
    mask: Bool[Tensor, "B N M"],
    *,
    start: Float[Tensor, "B N M"],
    weight: float = 0.1,
    outer: int = 10,
    inner: int = 10,
    masked_residual: bool = False,
) -> Solution:
    """The inference of Algorithm 1 ("Deep Graph Matching under Quadratic Constraint", CVPR 2021) and of its code.

    From `start`, each of `outer` rounds makes `inner` steps X ← X + 2/(k+2)·(S − X), S the Hungarian solution
    of the negative gradient, and rounds X to a permutation; a pair whose permutation a round did not change is
    done. There is no line search and the last permutation counts: the objective may rise, which
    `frank_wolfe_hard` never lets happen. This scheme is there to measure what was published.
    """
    if outer < 1 or inner < 0 or not 0 <= weight <= 1:
        raise ValueError(
            f"frank_wolfe_rounds needs outer >= 1, inner >= 0 and 0 <= weight <= 1, got {outer}, {inner} and {weight}"
        )
    unary, source, target = clear_padding(unary.double(), source.double(), target.double(), mask)
    x, begun = start.double().where(mask, 0), torch.zeros_like(unary)
    taken = torch.zeros(len(unary), dtype=torch.long, device=unary.device)
    still = torch.zeros_like(taken, dtype=torch.bool)
    for _ in range(outer):
        for k in range(inner):
            gradient = quadratic_gradient(x, unary, source, target, weight=weight, masked_residual=masked_residual)
            x = x + 2 / (k + 2) * (hungarian(-gradient, mask) - x)
        x = hungarian(x, mask)
        taken += inner * ~still
        # A round that ends where it began will do so again, so pairs that are done need no care.
        still, begun = (x == begun).all((1, 2)), x
        if still.all():
            break
    objective = quadratic_objective(x, unary, source, target, weight=weight, masked_residual=masked_residual)
    return Solution(x.to(start.dtype), objective.to(start.dtype), taken, still)
