"""A trained head and the untrained comparison decide together, each as far as it is sure."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quadmatch.decode import LARGE, decode, find_common
from quadmatch.graph import GraphPair
from quadmatch.matching import Features, Matching
from quadmatch.methods.bending import bend
from quadmatch.methods.dot_product import DotProduct

SHARE = 0.25
"""Of the untrained assignment in the mean."""
ALIKE = (0.3, 0.6)
"""Mean likeness of the untrained match, of at most 2, at which it begins to be taken for the same thing, and is."""
EDGES = (3.0, 6.0)
"""Edges that the untrained match keeps beyond those of the head's at which it begins to be believed, and is."""
SAME = (0.45, 0.8)
"""Mean likeness at which two pictures begin to be taken for views of one thing, whatever the head says, and are."""
EVEN = 0.5
"""Of the untrained assignment in one of the two that local maps go by; the other is the untrained one alone."""
HEAD_WEIGHT, PLAIN_WEIGHT = 0.05, 0.1
"""Of the quadratic term, when the two are decoded to count the edges that they keep."""


class Consensus(nn.Module):
    """`X = (1 − t)·(0.75 X_head + 0.25 X_plain) + t·X_untrained` on the graphs as they are.

    A head that learned categories knows parts of things of one kind, and little of a thing that it never
    saw; the untrained read-outs know the same thing again, and little of kinds. An assignment is sharp
    where its maker is sure and flat where not, so that their mean follows whoever knows. Where the two
    disagree on a pair, the graphs decide: two views of the same thing have most edges in common, so the
    untrained match is trusted (t, from 0 to 1) as far as its keypoints look alike and it keeps more edges
    than the head's does. Where the head says that nodes have no partner, it is believed less about them
    (`discount`). Both read the same frozen features, of which the untrained half compares two layers.
    At last, what local maps make of both halves is taken where it is farther from chance (`bend`): a wall
    that is seen from the side is narrower and has other edges, but its points move together.
    """

    def __init__(self, head: nn.Module, *, temperature: float = 0.03) -> None:
        super().__init__()
        self.head = head
        self.plain = DotProduct(temperature=temperature)
        self.untrained = DotProduct()

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """The consensus; unconstrained, it is the mean of both halves without any constraint."""
        learned = discount(self.head(pair, source, target))
        plain: Matching = self.plain(pair, source, target)
        untrained = replace(plain, assignment=self.untrained.assign(plain.unary, pair.mask))
        mean = torch.lerp(learned.assignment, plain.assignment, SHARE)
        likeness = (plain.assignment * plain.unary).sum((1, 2)) / plain.assignment.sum((1, 2)).clamp(min=1)
        trust = find_trust(pair, learned, untrained, likeness)[:, None, None]
        found = Matching(
            plain.unary,
            mean + trust * (untrained.assignment - mean),
            plain.structure_source,
            plain.structure_target,
            learned.earlier,
            torch.lerp(learned.release().assignment, plain.assignment, SHARE),
            common=find_in_common(learned, likeness),
        )
        known = untrained.assignment, torch.lerp(learned.assignment, plain.assignment, EVEN)
        return bend(pair, found, known, likeness > ALIKE[0], weight=HEAD_WEIGHT)


def discount(learned: Matching) -> Matching:
    """The matching with each entry times the geometric mean of how probable it is that its two nodes have a partner."""
    if learned.matchable is None:
        return learned
    source, target = (logits.sigmoid().sqrt() for logits in learned.matchable)
    return replace(learned, assignment=learned.assignment * source[:, :, None] * target[:, None, :])


def find_in_common(learned: Matching, likeness: Float[Tensor, " B"]) -> Float[Tensor, " B"] | None:
    """How probable it is that two pictures have anything in common: the head has learned it, or they look alike."""
    sure = find_common(learned)
    return None if sure is None else 1 - (1 - sure) * (1 - _rise(likeness, *SAME).to(sure.dtype))


def find_trust(
    pair: GraphPair, learned: Matching, untrained: Matching, likeness: Float[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """How far the untrained match of each pair is believed alone, from 0 to 1.

    Pairs of very many nodes are not decoded twice more for it: there it is 0.
    """
    if pair.mask.shape[1:].numel() > LARGE:
        return torch.zeros_like(likeness)
    graphs = replace(learned, structure_source=pair.source.adjacency, structure_target=pair.target.adjacency)
    more = _count_kept(pair, untrained, PLAIN_WEIGHT) - _count_kept(pair, graphs, HEAD_WEIGHT)
    return _rise(likeness, *ALIKE) * _rise(more, *EDGES).to(likeness.dtype)


def _count_kept(pair: GraphPair, matching: Matching, weight: float) -> Float[Tensor, " B"]:
    """Edges of the source that the decoded matching maps to edges of the target."""
    found = decode(matching, pair.mask, weight=weight).assignment
    ours, theirs = ((graph.adjacency != 0).to(found.dtype) for graph in (pair.source, pair.target))
    return torch.sum((found.mT @ ours @ found) * theirs, (1, 2)) / 2


def _rise(values: Tensor, low: float, high: float) -> Tensor:
    """0 up to `low`, 1 from `high` on, a straight line between."""
    return ((values - low) / (high - low)).clamp(0, 1)
