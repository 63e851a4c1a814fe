"""What local maps make of an assignment, taken where less speaks against it than against the one that was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.decode import LARGE, decode
from quadmatch.graph import GraphPair
from quadmatch.layers.local_maps import DOUBT, measure_miss, sharpen
from quadmatch.matching import Matching

MISS, NODES = 55.0, 12
"""Pixels of the crop by which neighbours may misplace a node on average where local maps decide, and nodes for that."""


def bend(
    pair: GraphPair,
    found: Matching,
    starts: Sequence[Float[Tensor, "B N M"]],
    alike: Bool[Tensor, " B"],
    *,
    weight: float,
) -> Matching:
    """The matching, with what local maps make of a start where less speaks against that; `weight` as in `decode`.

    That is for matches that leave no node alone: maps fit points without a partner too, wherever they are.

    Pairs of few nodes fit any map by chance, and those that are not `alike` at all may do so too; pairs of very many
    nodes take too long. They stay as they are.
    """
    if pair.mask.shape[1:].numel() > LARGE:
        return found
    enough = (torch.minimum(pair.source.sizes, pair.target.sizes) >= NODES) & alike
    if not enough.any():
        return found
    best, (least, _) = found.assignment, _weigh_match(pair, found, weight)
    for start in starts:
        bent = replace(found, assignment=sharpen(start, pair))
        cost, miss = _weigh_match(pair, bent, weight)
        better = enough & (miss < MISS) & (cost < least)
        best = torch.where(better[:, None, None], bent.assignment, best)
        least = torch.where(better, cost, least)
    return replace(found, forced=best)


def _weigh_match(pair: GraphPair, matching: Matching, weight: float) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """What speaks against the match of a matching, and by how much it misplaces neighbours.

    Per node, how unlikely its place is where neighbours miss places by so much, and its partner before any constraint.
    """
    match = decode(matching, pair.mask, weight=weight).assignment
    miss, known = measure_miss(match, pair), torch.log(matching.release().assignment.double() + DOUBT)
    unlikely = -(known * match).sum((1, 2)) / match.sum((1, 2)).clamp(min=1)
    return 2 * torch.log(miss.clamp(min=1)) + unlikely, miss
