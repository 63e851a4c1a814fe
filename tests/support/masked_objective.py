"""The quadratic objective, also with the released code's choice of which edges count: an oracle."""

from torch import Tensor

from quadmatch.solvers.quadratic.objective import quadratic_objective


def compute_objective(
    x: Tensor, unary: Tensor, source: Tensor, target: Tensor, *, weight: float, masked: bool
) -> Tensor:
    """weight·‖A − XBXᵀ‖² − (1 − weight)·Σ unary∘X; if `masked`, only where the source has an edge."""
    whole = quadratic_objective(x, unary, source, target, weight=weight)
    added = (x @ target @ x.mT).where(source == 0, 0)
    return whole - weight * added.square().sum((1, 2)) if masked else whole
