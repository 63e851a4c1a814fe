"""A trained head and the untrained comparison decide together, each as far as it is sure."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from quadmatch.graph import GraphPair
from quadmatch.matching import Features, Matching
from quadmatch.methods.dot_product import DotProduct


class Consensus(nn.Module):
    """`X = (X_head + X_plain) / 2` on the graphs as they are.

    A head that learned categories knows parts of things of one kind, and little of a thing that it never
    saw; the untrained read-outs know the same thing again, and little of kinds. An assignment is sharp
    where its maker is sure and flat where not, so that their mean follows whoever knows. Features hold
    those of the head first and the untrained ones after them (`TwinFeatures`).
    """

    def __init__(self, head: nn.Module, *, temperature: float = 0.03) -> None:
        super().__init__()
        self.head = head
        self.plain = DotProduct(temperature=temperature)

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """The mean of both, and the mean without the head's constraint as the last of the earlier ones."""
        (learned_source, plain_source), (learned_target, plain_target) = halve(source), halve(target)
        learned: Matching = self.head(pair, learned_source, learned_target)
        plain: Matching = self.plain(pair, plain_source, plain_target)
        before = learned.earlier[-1] if learned.earlier else learned.assignment
        return Matching(
            plain.unary,
            (learned.assignment + plain.assignment) / 2,
            plain.structure_source,
            plain.structure_target,
            (*learned.earlier[:-1], (before + plain.assignment) / 2),
        )


def halve(features: Features) -> tuple[Features, Features]:
    """The first and the second half of the channels."""
    local, edge = features.local.tensor_split(2, -1), features.edge.tensor_split(2, -1)
    first, second = (replace(features, local=own, edge=other) for own, other in zip(local, edge))
    return first, second
