"""A gradient through a combinatorial solver that is only called, never looked into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from quadmatch.solvers.lawler.operator import EdgeAffinity

Solve = Callable[[EdgeAffinity], Tensor]


def solve_blackbox(operator: EdgeAffinity, solve: Solve, *, strength: float = 80.0) -> Float[Tensor, "B N M"]:
    """`solve(operator)`, a 0/1 assignment X that maximises its score, with a gradient for unary and edge affinities.

    M. Vlastelica, A. Paulus, V. Musil, G. Martius, M. Rolínek, "Differentiation of blackbox combinatorial solvers",
    ICLR 2020: with X' the solution for `unary − strength·∂L/∂X`, an affinity's gradient is how often X uses it less
    how often X' does, over `strength`. It is that of a piecewise linear function between the solver's values, not of
    the solver, whose own gradient is zero.
    """
    solution: Tensor = _Blackbox.apply(operator.unary, operator.edge, operator, solve, strength)  # type: ignore[no-untyped-call]
    return solution


class _Blackbox(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, unary: Tensor, edge: Tensor, operator: EdgeAffinity, solve: Solve, strength: float) -> Tensor:
        ctx.operator = replace(operator, unary=unary.detach(), edge=edge.detach())
        ctx.solve, ctx.strength = solve, strength
        solution = solve(ctx.operator)
        ctx.save_for_backward(solution)
        return solution

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        (solution,) = ctx.saved_tensors
        operator: EdgeAffinity = ctx.operator
        moved = ctx.solve(replace(operator, unary=operator.unary - ctx.strength * gradients[0]))
        met, met_moved = operator.meet(solution), operator.meet(moved)
        return (solution - moved) / ctx.strength, (met - met_moved) / ctx.strength, None, None, None
