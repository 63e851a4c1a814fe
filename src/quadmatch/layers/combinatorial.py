"""A combinatorial solver as the last layer of a network."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

from quadmatch.graph import GraphPair
from quadmatch.solvers.lawler.blackbox import solve_blackbox
from quadmatch.solvers.lawler.fixed_point import find_fixed_point
from quadmatch.solvers.lawler.operator import EdgeAffinity


class CombinatorialAssign(nn.Module):
    """Affinities → 0/1 assignment of (nearly) the largest score, with the gradient of black-box differentiation.

    In training, true matches are worth `margin` less, so that they must win by it. `maximal` matches min(n, m) nodes;
    otherwise a match is made only where it raises the score. `strength` multiplies the gradient of the loss: where that
    is divided by the matches of a batch, it should grow with them.
    """

    def __init__(self, *, maximal: bool, strength: float, margin: float, iterations: int) -> None:
        super().__init__()
        self.maximal, self.strength, self.margin, self.iterations = maximal, strength, margin, iterations

    def forward(self, operator: EdgeAffinity, pair: GraphPair) -> Float[Tensor, "B N M"]:
        """The assignment of each pair, zero on padding."""
        unary = operator.unary
        if self.training:
            unary = unary - self.margin * (pair.truth & pair.mask).to(unary.dtype)
        solve = partial(find_fixed_point, mask=pair.mask, partial=not self.maximal, iterations=self.iterations)
        return solve_blackbox(replace(operator, unary=unary), solve, strength=self.strength)
