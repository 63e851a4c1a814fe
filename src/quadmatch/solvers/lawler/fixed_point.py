"""Integer-projected fixed points: permutations for Lawler's form, with partial matchings, by Frank–Wolfe."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.solvers.lawler.operator import AffinityOperator
from quadmatch.solvers.linear.hungarian import hungarian


@torch.no_grad()
def find_fixed_point(
    operator: AffinityOperator, mask: Bool[Tensor, "B N M"], *, partial: bool = False, iterations: int = 15
) -> Float[Tensor, "B N M"]:
    """0/1 assignment X that raises `Σ unary∘X + Σ edge affinities of pairs of matches`; the best one seen.

    Each step goes from X towards the permutation that the gradient favours (Hungarian), as far as the objective rises
    (M. Leordeanu, M. Hebert, R. Sukthankar, "An integer projected fixed point method for graph matching and MAP
    inference", NIPS 2009), from the best match of nodes and from an even start. K must be symmetric. With `partial`,
    a match is made only where it raises the objective, else min(n, m) matches. No guarantee of the optimum.
    """
    unary = operator.unary.detach().masked_fill(~mask, 0)
    threshold = 0.0 if partial else None
    real = mask.to(unary.dtype)
    sizes = torch.stack([mask.any(2).sum(1), mask.any(1).sum(1)]).amax(0).clamp(min=1)
    starts = [hungarian(unary, mask, threshold=threshold), real / sizes[:, None, None]]
    x = torch.stack(starts, 1)
    best, most = starts[0], operator.score(starts[0])
    spread = mask[:, None].expand_as(x).flatten(0, 1)
    edges = _add_edges(operator, x, unary)
    for _ in range(iterations):
        slope = unary[:, None] + 2 * edges
        corner = hungarian(slope.flatten(0, 1), spread, threshold=threshold).view_as(x)
        # What is quadratic in 0/1 entries is linear: the objective of a corner is its score.
        best, most = _keep(best, most, corner, operator.score(corner))
        move = corner - x
        moved = _add_edges(operator, move, unary)
        step = _choose_step((slope * move).sum((2, 3)), (move * moved).sum((2, 3)))[..., None, None]
        x, edges = x + step * move, edges + step * moved
    rounded = hungarian(x.flatten(0, 1), spread, threshold=0.5 if partial else None).view_as(x)
    return _keep(best, most, rounded, operator.score(rounded))[0]


def _add_edges(operator: AffinityOperator, x: Tensor, unary: Tensor) -> Tensor:
    """What edges alone add: K·x without its diagonal."""
    return operator(x) - unary[:, None] * x


def _choose_step(slope: Tensor, curvature: Tensor) -> Tensor:
    """How far from 0 to 1 `slope·t + curvature·t²` rises to its maximum; the slope is not negative."""
    top = -slope / (2 * curvature.where(curvature < 0, -1))
    return torch.where(slope + curvature >= 0, 1.0, 0.0).where(curvature >= 0, top.clamp(0, 1))


def _keep(best: Tensor, most: Tensor, found: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The better of what was best and of what was found from each start."""
    for candidate, score in zip(found.unbind(1), scores.unbind(1)):
        better = score > most
        best, most = torch.where(better[:, None, None], candidate, best), torch.where(better, score, most)
    return best, most
