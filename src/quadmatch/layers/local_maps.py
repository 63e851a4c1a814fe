"""Where a node's neighbours put it: an assignment sharpened by affine maps that are fitted around every node."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad, softplus

from quadmatch.graph import Graph, GraphPair
from quadmatch.solvers.linear.sinkhorn import sinkhorn

WIDE, NARROW, ROUNDS = 250.0, 60.0, 8
"""Pixels of the crop within which neighbours count, in the first round and in the last, and the rounds."""
STIFFNESS = 900.0
"""Squared pixels over which neighbours must be spread before they stretch or turn the map of all."""
NOISE = 36.0
"""Squared pixels by which any place may be wrong."""
AREA = 256.0**2
"""Squared pixels of the crop: a node that follows no neighbour may be anywhere in it."""
DOUBT = 0.005
"""Of an assignment, so that nothing is impossible."""
HOPELESS = -60.0
"""Logarithm of odds below which nothing differs; a small range of numbers makes the normalisation faster."""
EVERYBODY = -12.0
"""Logarithm of odds above which a node is matched where nearly all have a partner."""
CHANCE = -2.0
"""Logarithm of the odds from which on a match counts as one that is not made by chance."""


def sharpen(
    start: Float[Tensor, "B N M"],
    known: Float[Tensor, "B N M"],
    pair: GraphPair,
    *,
    least: Float[Tensor, " B"],
    rounds: int = ROUNDS,
    doubt: float = DOUBT,
) -> Float[Tensor, "B N M"]:
    """The assignment that what is `known` of nodes and where their neighbours go make together, begun at `start`.

    Around every node an affine map is fitted to where the others go, without the node itself, so that it cannot
    confirm itself; how far such maps miss what they predict, along each direction, says how much they count. A node
    stays alone where no match has odds whose logarithm is above `least`, and counts no more for its neighbours.
    `doubt` is added to what is known: the larger, the more neighbours can overrule.
    """
    evidence, both = torch.log(known.double() + doubt), Graph.cat([pair.source, pair.target])
    belief = start.double()
    for width in torch.logspace(math.log10(WIDE), math.log10(NARROW), rounds).tolist():
        scores = (evidence + _judge_both(belief, both, width)).clamp(min=HOPELESS).masked_fill(~pair.mask, 0)
        belief = sinkhorn(scores, pair.mask, temperature=1.0, slack=least)
    return belief.to(start.dtype)


def measure_gain(
    matched: Float[Tensor, "B N M"], known: Float[Tensor, "B N M"], pair: GraphPair
) -> Float[Tensor, " B"]:
    """How far matches are from chance, by what is known of their nodes and by where neighbours go; a mean over nodes.

    A match by chance brings nothing, and loses nothing: points without a partner have to go somewhere.
    """
    evidence, both = torch.log(known.double() + DOUBT), Graph.cat([pair.source, pair.target])
    belief = matched.double()
    for _ in range(3):  # What turned out to be by chance counts no more for its neighbours.
        odds = evidence + _judge_both(belief, both, NARROW) - CHANCE
        belief = matched * odds.sigmoid()
    return (softplus(odds) * matched).sum((1, 2)) / matched.sum((1, 2)).clamp(min=1)


def _judge_both(belief: Float[Tensor, "B N M"], both: Graph, width: float) -> Float[Tensor, "B N M"]:
    """The mean of what neighbours on both sides say of each pair of nodes; `both` are all sources, then all targets."""
    pairs, rows, columns = belief.shape
    points, nodes = both.points.double(), both.mask.shape[1]
    wide = pad(belief, (0, nodes - columns, 0, nodes - rows))
    judged = _judge(torch.cat([wide, wide.mT]), points, points.roll(pairs, 0), both.mask, width)
    there, back = judged.tensor_split(2)
    return ((there + back.mT) / 2)[:, :rows, :columns]


def _judge(
    belief: Float[Tensor, "B N M"],
    points: Float[Tensor, "B N 2"],
    places: Float[Tensor, "B M 2"],
    mask: Bool[Tensor, "B N"],
    width: float,
) -> Float[Tensor, "B N M"]:
    """The logarithm of how much likelier each place is by where the neighbours of each node put it than by chance."""
    total = belief.sum(-1).clamp(min=1e-9)
    found, sure = belief @ places / total[..., None], belief.square().sum(-1) * mask
    near = _weigh(points, sure, width)
    predicted = _predict(points, found, near, sure)
    missed = found - predicted
    x, y = missed.unbind(-1)
    share = near / near.sum(-1, keepdim=True).clamp(min=1e-9)
    xx, xy, yy = (share @ torch.stack([x * x, x * y, y * y], -1)).unbind(-1)
    xx, yy = xx + NOISE, yy + NOISE
    size = xx * yy - xy * xy
    right, down = (places[:, None] - predicted[:, :, None]).unbind(-1)
    far = (yy[..., None] * right - 2 * xy[..., None] * down) * right + xx[..., None] * down * down
    chance: Tensor = torch.log(AREA / (2 * math.pi * size.sqrt()))
    return chance[..., None] - far / (2 * size[..., None])


def _weigh(points: Float[Tensor, "B N 2"], sure: Float[Tensor, "B N"], width: float) -> Float[Tensor, "B N N"]:
    """How much each node counts for each other one; for itself, nothing."""
    near = torch.exp(-torch.cdist(points, points).square() / (2 * width**2)) * sure[:, None]
    return near * (1 - torch.eye(near.shape[1], dtype=near.dtype, device=near.device))


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
    # By hand: for two rows a library's solver takes longer to be called than to solve.
    size = square[..., 0, 0] * square[..., 1, 1] - square[..., 0, 1] * square[..., 1, 0]
    turned = square.flip(-2, -1) * torch.tensor([[1, -1], [-1, 1]]).to(square)
    return turned @ mixed / size[..., None, None], centre, other


def _moment(share: Tensor, left: Tensor, right: Tensor, centre: Tensor, other: Tensor) -> Float[Tensor, "B Q 2 2"]:
    """The second moment of two lists of points about their means, for each row of shares."""
    products = (left[..., :, None] * right[..., None, :]).flatten(2)
    return (share @ products).view(*share.shape[:2], 2, 2) - centre[..., :, None] * other[..., None, :]
