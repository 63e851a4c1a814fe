"""Where a node's neighbours put it: an assignment sharpened by affine maps that are fitted around every node."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.graph import GraphPair
from quadmatch.solvers.linear.sinkhorn import sinkhorn

WIDE, NARROW, ROUNDS = 250.0, 60.0, 8
"""Pixels of the crop within which neighbours count, in the first round and in the last, and the rounds."""
STIFFNESS = 900.0
"""Squared pixels over which neighbours must be spread before they stretch or turn the map of all."""
NOISE = 36.0
"""Squared pixels by which any place may be wrong."""
DOUBT = 0.005
"""Of an assignment, so that nothing is impossible."""


def sharpen(
    assignment: Float[Tensor, "B N M"], pair: GraphPair, *, rounds: int = ROUNDS, doubt: float = DOUBT
) -> Float[Tensor, "B N M"]:
    """The assignment times how well each pair of nodes fits to where the neighbours of either go.

    Around every node an affine map is fitted to where the others go, without the node itself, so that it cannot
    confirm itself; how far such maps miss what they predict, along each direction, says how much they count. Where
    neighbours do not move together, that is little, and the assignment stays as it is.
    """
    mask = pair.mask
    known = torch.log(assignment.double() + doubt)
    belief, sides = assignment.double(), (pair.source, pair.target)
    points = [side.points.double() for side in sides]
    for width in torch.logspace(math.log10(WIDE), math.log10(NARROW), rounds).tolist():
        there = _judge(belief, points[0], points[1], sides[0].mask, width)
        back = _judge(belief.mT, points[1], points[0], sides[1].mask, width).mT
        scores = (known + (there + back) / 2).masked_fill(~mask, 0)
        belief = sinkhorn(scores, mask, temperature=1.0)
    return belief.to(assignment.dtype)


def _judge(
    belief: Float[Tensor, "B N M"],
    points: Float[Tensor, "B N 2"],
    places: Float[Tensor, "B M 2"],
    mask: Bool[Tensor, "B N"],
    width: float,
) -> Float[Tensor, "B N M"]:
    """The logarithm of how well each place fits to where the neighbours of each node put it, at most 0."""
    found, sure = _expect(belief, places)
    near = _weigh(points, sure * mask, width)
    predicted = _predict(points, found, near, sure * mask)
    missed = found - predicted
    outer = missed[..., :, None] * missed[..., None, :]
    spread = torch.einsum("bij,bjkl->bikl", near, outer) / near.sum(-1).clamp(min=1e-9)[..., None, None]
    spread = spread + NOISE * torch.eye(2, dtype=spread.dtype, device=spread.device)
    offset = places[:, None] - predicted[:, :, None]
    far: Tensor = ((offset @ torch.linalg.inv(spread)) * offset).sum(-1)
    return -far / 2


def measure_miss(matched: Float[Tensor, "B N M"], pair: GraphPair) -> Float[Tensor, " B"]:
    """Pixels of the crop by which the neighbours of matched nodes misplace them, the mean of both directions."""
    total = matched.new_zeros(len(matched), dtype=torch.float64)
    for one, side, other in ((matched, pair.source, pair.target), (matched.mT, pair.target, pair.source)):
        points, used = side.points.double(), one.double().sum(-1) * side.mask
        found, _ = _expect(one.double(), other.points.double())
        missed = (found - _predict(points, found, _weigh(points, used, NARROW), used)).square().sum(-1)
        total += ((missed * used).sum(1) / used.sum(1).clamp(min=1e-9)).sqrt() / 2
    return total


def _weigh(points: Float[Tensor, "B N 2"], sure: Float[Tensor, "B N"], width: float) -> Float[Tensor, "B N N"]:
    """How much each node counts for each other one; for itself, nothing."""
    near = torch.exp(-torch.cdist(points, points).square() / (2 * width**2)) * sure[:, None]
    return near * (1 - torch.eye(near.shape[1], dtype=near.dtype, device=near.device))


def _expect(
    belief: Float[Tensor, "B N M"], places: Float[Tensor, "B M 2"]
) -> tuple[Float[Tensor, "B N 2"], Float[Tensor, "B N"]]:
    """Where each node is expected, and how sure that is."""
    total = belief.sum(-1).clamp(min=1e-9)
    return belief @ places / total[..., None], belief.square().sum(-1) / total


def _predict(
    points: Float[Tensor, "B N 2"],
    found: Float[Tensor, "B N 2"],
    weights: Float[Tensor, "B N N"],
    sure: Float[Tensor, "B N"],
) -> Float[Tensor, "B N 2"]:
    """Where affine maps fitted around each node put it; stiff, they are the map of all, and that is a shift."""
    whole, *_ = _fit(points, found, sure[:, None], torch.eye(2, dtype=points.dtype, device=points.device))
    matrix, centre, other = _fit(points, found, weights, whole)
    return ((points - centre)[..., None, :] @ matrix)[..., 0, :] + other


def _fit(
    points: Float[Tensor, "B N 2"], found: Float[Tensor, "B N 2"], weights: Float[Tensor, "B Q N"], prior: Tensor
) -> tuple[Float[Tensor, "B Q 2 2"], Float[Tensor, "B Q 2"], Float[Tensor, "B Q 2"]]:
    """Affine maps by weighted least squares, each as a matrix, what it is centred on and where that goes."""
    share = weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)
    centre, other = share @ points, share @ found
    stiff = STIFFNESS * torch.eye(2, dtype=points.dtype, device=points.device)
    square = _moment(share, points, points, centre, centre) + stiff
    mixed = _moment(share, points, found, centre, other) + stiff @ prior
    return torch.linalg.solve(square, mixed), centre, other


def _moment(share: Tensor, left: Tensor, right: Tensor, centre: Tensor, other: Tensor) -> Float[Tensor, "B Q 2 2"]:
    """The second moment of two lists of points about their means, for each row of shares."""
    products = torch.einsum("bqn,bnk,bnl->bqkl", share, left, right)
    return products - centre[..., :, None] * other[..., None, :]
