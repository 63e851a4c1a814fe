"""What local maps make of an assignment, taken where it is farther from chance than the one that was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quadmatch.decode import LARGE, decode
from quadmatch.graph import GraphPair
from quadmatch.layers.local_maps import EVERYBODY, measure_gain, sharpen
from quadmatch.matching import Matching
from quadmatch.solvers.linear.sinkhorn import sinkhorn

NODES = 15
"""From so many nodes on local maps say something; fewer fit any map by chance."""
LEAST = (-4.0, EVERYBODY)
"""Of `sharpen`: where some nodes have no partner, and where nearly all have one."""
NEAR = 40.0
"""Pixels of the crop by which places may differ where the second picture is taken to be much like the first."""

SAME = 1e-6
"""Gains that differ by less are equal."""
CERTAIN = 2.5
"""Gain from which on what local maps make is believed: two things of one kind with points that match nothing, and any
points at all, fit some maps by chance, but not so well."""


def bend(pair: GraphPair, found: Matching, known: Sequence[Float[Tensor, "B N M"]], *, weight: float) -> Matching:
    """The matching, with what local maps make of what is known where that is farther from chance; `weight` of `decode`.

    Each assignment in `known` is begun with itself, and with nodes at the same place in both crops. That is for
    matches that leave no node alone. Pairs of few nodes, those of which local maps make nothing that is certain, and
    pairs of very many nodes, which take too long, stay as they are.
    """
    if pair.mask.shape[1:].numel() > LARGE:
        return found
    enough = torch.minimum(pair.source.sizes, pair.target.sizes) >= NODES
    if not enough.any():
        return found
    tries = 1 + 2 * len(known) * len(LEAST)
    some, pairs = found.repeat(enough, tries), pair.repeat(enough, tries)
    every = torch.cat([found.assignment[enough], _sharpen_all(pair.repeat(enough), [one[enough] for one in known])])
    matches = decode(replace(some, assignment=every), pairs.mask, weight=weight).assignment
    gain = measure_gain(matches, some.release().assignment, pairs).view(tries, -1)
    best = every.view(tries, -1, *every.shape[1:])[choose_try(gain), torch.arange(gain.shape[1])]
    return replace(found, forced=found.assignment.masked_scatter(enough[:, None, None], best))


def choose_try(gain: Float[Tensor, "T B"]) -> Int[Tensor, " B"]:
    """The try of each pair whose gain is the largest, or the first one, the match as it was, if no gain is certain.

    Tries that end at one match differ by rounding alone: of those, the first.
    """
    best = gain.amax(0)
    return torch.where(best >= CERTAIN, (gain >= best - SAME).int().argmax(0), 0)


def _sharpen_all(pair: GraphPair, known: Sequence[Float[Tensor, "B N M"]]) -> Float[Tensor, "K N M"]:
    """What local maps make of everything that is known, from both starts and with both limits, in one batch."""
    offset = torch.cdist(pair.source.points, pair.target.points) / NEAR
    place = sinkhorn(-offset.square() / 2, pair.mask, temperature=1.0)
    starts = torch.cat([start for one in known for start in (one, place)] * len(LEAST))
    evidence = torch.cat([one for one in known for _ in range(2)] * len(LEAST))
    least = torch.tensor(LEAST).to(starts).repeat_interleave(len(starts) // len(LEAST))
    return sharpen(starts, evidence, pair.repeat(slice(None), len(starts) // len(place)), least=least)
