"""Affinities of nodes and of edges whose channels are weighted by what both pictures show, as in BB-GM."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from quadmatch.graph import GraphPair
from quadmatch.matching import Features
from quadmatch.solvers.lawler.operator import EdgeAffinity, list_edges, mark_edges

OFFSET, HALF = 0.5, 0.5
"""Taken off a softplus, so that a match may be worth less than none; and the weight of either direction of an edge."""


class GlobalAffinity(nn.Module):
    """`softplus(Σ_c x_c tanh(W g)_c y_c) − ½` of nodes, and half of it of edges, whose features are x_i − x_j.

    g are the features of both pictures as a whole, `whole` channels each; nodes and edges have a W each. The products
    for edges are differences of products for nodes, so that no feature of an edge is ever made.
    """

    def __init__(self, channels: int, whole: int) -> None:
        super().__init__()
        self.nodes, self.edges = (nn.Linear(2 * whole, channels) for _ in range(2))

    def forward(
        self,
        pair: GraphPair,
        nodes: tuple[Float[Tensor, "B N C"], Float[Tensor, "B M C"]],
        source: Features,
        target: Features,
    ) -> EdgeAffinity:
        """The product with the affinities of each pair; `nodes` are refined features of source and target."""
        both = torch.cat([source.whole, target.whole], -1)
        unary, products = ((nodes[0] * _weigh(one, both)) @ nodes[1].mT for one in (self.nodes, self.edges))
        graphs = (pair.source, pair.target)
        lists = [list_edges(graph.adjacency.abs() + graph.adjacency.mT.abs()) for graph in graphs]
        marks = [mark_edges(edges, graph.mask.shape[1], unary.dtype) for edges, graph in zip(lists, graphs)]
        first, second = ((starts - ends)[:, 0] for starts, ends in marks)
        edge = HALF * (softplus(first @ products @ second.mT) - OFFSET)
        return EdgeAffinity((softplus(unary) - OFFSET).masked_fill(~pair.mask, 0), edge, lists[0], lists[1])


def _weigh(linear: nn.Linear, whole: Float[Tensor, "B C"]) -> Float[Tensor, "B 1 D"]:
    weights: Tensor = linear(whole).tanh()[:, None]
    return weights
