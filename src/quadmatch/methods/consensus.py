"""A trained head and the untrained comparison decide together, each as far as it is sure."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quadmatch.decode import find_common
from quadmatch.graph import GraphPair
from quadmatch.matching import Features, Matching
from quadmatch.methods.bending import bend
from quadmatch.methods.dot_product import DotProduct

SHARE = 0.25
"""Of the untrained assignment in the mean."""
SAME = (0.45, 0.8)
"""Mean likeness at which two pictures begin to be taken for views of one thing, whatever the head says, and are."""
EVEN = 0.5
"""Of the untrained assignment in one of the three that local maps go by."""
WEIGHT = 0.05
"""Of the quadratic term in decoding."""


class Consensus(nn.Module):
    """`X = 0.75 X_head + 0.25 X_plain`, and what local maps make of the two, on the graphs as they are.

    The untrained read-outs know the same spot again, wherever they see it; a head knows parts of things of a kind, and
    after training on views also the same thing from elsewhere. An assignment is sharp where its maker is sure and flat
    where not, so that their mean follows whoever knows. Where the head says that nodes have no partner, it is believed
    less about them (`discount`). Both read the same frozen features, of which the untrained half compares two layers.
    At last, what local maps make of both halves is taken where it is certain and farther from chance (`bend`): a wall
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
        untrained = self.untrained.assign(plain.unary, pair.mask)
        likeness = (plain.assignment * plain.unary).sum((1, 2)) / plain.assignment.sum((1, 2)).clamp(min=1)
        found = Matching(
            plain.unary,
            torch.lerp(learned.assignment, plain.assignment, SHARE),
            plain.structure_source,
            plain.structure_target,
            learned.earlier,
            torch.lerp(learned.release().assignment, plain.assignment, SHARE),
            common=find_in_common(learned, likeness),
        )
        even = torch.lerp(learned.assignment, plain.assignment, EVEN)
        # Squared, nodes count more against their neighbours: where many points match nothing, neighbours know less.
        return bend(pair, found, (untrained, even, even.square()), weight=WEIGHT)


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


def _rise(values: Tensor, low: float, high: float) -> Tensor:
    """0 up to `low`, 1 from `high` on, a straight line between."""
    return ((values - low) / (high - low)).clamp(0, 1)
