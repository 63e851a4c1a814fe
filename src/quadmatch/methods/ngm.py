"""NGM: R. Wang, J. Yan, X. Yang, *Neural Graph Matching Network*, arXiv 1911.11308 (TPAMI 2021).

Affinities of nodes and edges as in GMN (`BlockAffinity`); three layers of a graph network on the association
graph (`AssociationConv`, 16 channels and one of Sinkhorn), which starts with the affinities of nodes; a linear
score of each candidate match, and Sinkhorn of it. Trained with the loss `permutation`.

Chosen: the source is triangulated and the target fully connected, as in GMN; every pair of edges counts as a
neighbour, also one whose learned affinity is zero. Structures for the constraint are as in qc-GMN.
"""

from __future__ import annotations

from torch import nn

from quadmatch.graph import GraphPair
from quadmatch.layers.association import AssociationConv, count_neighbours
from quadmatch.layers.block_affinity import BlockAffinity
from quadmatch.layers.network import Assign
from quadmatch.layers.structure import weigh_pair
from quadmatch.matching import Features, Matching


class NGM(nn.Module):
    """`width` channels of each candidate match after each of the `layers`."""

    def __init__(
        self,
        *,
        channels: int = 1024,
        width: int = 16,
        layers: int = 3,
        complete: bool = True,
        temperature: float = 0.05,
        sinkhorn_iterations: int = 20,
    ) -> None:
        super().__init__()
        self.affinity = BlockAffinity(channels // 2, complete=complete)
        self.assign = Assign(temperature, iterations=sinkhorn_iterations)
        inputs = [1, *[width + 1] * layers][:layers]
        self.layers = nn.ModuleList(AssociationConv(one, width, self.assign) for one in inputs)
        self.classify = nn.Linear(width + 1, 1, bias=False)

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """Match every pair of the batch."""
        operator = self.affinity(pair, source, target)
        counts = count_neighbours(operator.source, operator.target)
        candidates = operator.unary[..., None]
        for layer in self.layers:
            candidates = layer(candidates, operator, counts, pair.mask)
        scores = self.classify(candidates)[..., 0].masked_fill(~pair.mask, 0)
        return Matching(scores, self.assign(scores, pair.mask), *weigh_pair(pair, source, target))
