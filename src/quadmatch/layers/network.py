"""The loop that most methods share: both graphs through the same layers, which tell each other what they found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from quadmatch.graph import Graph, GraphPair
from quadmatch.layers.affinity import divide_by_largest
from quadmatch.layers.cross_graph import concatenate_other, join_graphs, join_nodes, split_nodes
from quadmatch.layers.nodes import map_nodes
from quadmatch.layers.structure import Kernel, weigh_adjacency
from quadmatch.matching import Features, Matching, Stage
from quadmatch.solvers.linear.sinkhorn import sinkhorn


class Assign(nn.Module):
    """Scores → soft assignment: Sinkhorn at a temperature.

    `divide`: the scores of each pair are divided by the largest of them in evaluation mode, as the released
    code of qc-DGM does.
    """

    def __init__(self, temperature: float, *, iterations: int = 20, divide: bool = False) -> None:
        super().__init__()
        self.temperature, self.iterations, self.divide = temperature, iterations, divide

    def forward(self, scores: Float[Tensor, "B N M"], mask: Bool[Tensor, "B N M"]) -> Float[Tensor, "B N M"]:
        """The assignment of each pair, zero on padding."""
        if self.divide and not self.training:
            scores = divide_by_largest(scores, mask)
        return sinkhorn(scores, mask, temperature=self.temperature, iterations=self.iterations)


class Matchability(nn.Module):
    """How sure each node is that it has a partner in the other graph, as a logit."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, 1))

    def forward(self, nodes: Float[Tensor, "B N C"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """A logit for each node, zero on padding."""
        return map_nodes(self.layers, nodes, mask)[..., 0]


def pick_mutually(scores: Float[Tensor, "B N M"], mask: Bool[Tensor, "B N M"]) -> Float[Tensor, "B N M"]:
    """`p(j|i)·p(i|j)`, each the softmax of the scores over the other graph: both are large for partners only."""
    hidden = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return (hidden.softmax(1) * hidden.softmax(2)).masked_fill(~mask, 0)


class SiameseNetwork(nn.Module):
    """attributes ▸ (layer ▸ cross-graph step) × layers ▸ affinity ▸ assignment, as a head.

    - `attributes(features, points, mask)`: what a node begins with.
    - `layers`, each `layer(inputs, shortcut, graph, structure)`; both graphs go through them as one batch.
    - `affinities`, each `affinity(source, target)`: scores of all pairs of nodes. One scores the last layer
      only; one for each layer adds a cross-graph step between layers: each node gets the features of what it
      is matched to so far, concatenated, and `merges[i](both, shortcut, mask)` maps both back, if given.
    - `assign(scores, mask)`: scores to an assignment.
    - `kernel`: weighs the edges by the features of their ends, for layers and for the constraint; None
      leaves them as they are. The first `plain_layers` see them unweighed.
    - `edges(attributes, adjacency)`: an adjacency that takes the place of the graphs' own, if given.
    - `exchange`: without it layers are scored each, but there is no cross-graph step between them, and in torch's
      inference mode, where nobody learns from that, the last layer alone is scored.
    - `matchability(features, mask)`: whether each node has a partner at all, if given; then the head also says
      which nodes pick each other, as `contrastive` trains them to.
    - `alone`: the number of layers before nodes know of the other graph; what they are then is part of what is said
      in training, so that a loss may compare nodes of different pairs. None if there is no such layer.
    - `correction`: the last layer's features correct the attributes, x + correction·f(x), as in BB-GM.
    """

    def __init__(
        self,
        attributes: nn.Module,
        layers: Iterable[nn.Module],
        affinities: Iterable[nn.Module],
        assign: nn.Module,
        *,
        merges: Iterable[nn.Module] = (),
        kernel: Kernel | None = None,
        plain_layers: int = 0,
        edges: nn.Module | None = None,
        correction: float | None = None,
        exchange: bool = True,
        matchability: nn.Module | None = None,
        alone: int | None = None,
    ) -> None:
        super().__init__()
        self.attributes = attributes
        self.layers, self.affinities = nn.ModuleList(layers), nn.ModuleList(affinities)
        self.merges, self.assign = nn.ModuleList(merges), assign
        self.kernel, self.plain_layers, self.edges, self.correction = kernel, plain_layers, edges, correction
        self.exchange, self.matchability, self.alone = exchange, matchability, alone
        if len(self.affinities) not in (1, len(self.layers)):
            found = f"{len(self.affinities)} affinities for {len(self.layers)} layers"
            raise ValueError(f"affinities must be one, or one for each layer; got {found}")

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """Match every pair of the batch."""
        graph, mask = join_graphs(pair.source, pair.target), pair.mask
        rows, columns = mask.shape[1:]
        attributes = self.attributes(join_nodes(source.join(), target.join()), graph.points, graph.mask)
        if self.edges is not None:
            graph = replace(graph, adjacency=self.edges(attributes, graph.adjacency))
        features = inputs = attributes
        earlier: list[Stage] = []
        alone = None
        scored = len(self.affinities) > 1 and (self.exchange or not torch.is_inference_mode_enabled())
        for index, layer in enumerate(self.layers):
            structure = graph.adjacency if index < self.plain_layers else self.weigh(features, graph)
            features = inputs = layer(inputs, features, graph, structure)
            if self.training and index + 1 == self.alone:
                alone = split_nodes(self.affinities[index].place(features), rows, columns)  # type: ignore[operator]
            if scored and index + 1 < len(self.layers):
                ours, theirs = split_nodes(features, rows, columns)
                earlier.append(self.score(index, ours, theirs, mask))
                if self.exchange:
                    inputs = join_nodes(*concatenate_other(ours, theirs, earlier[-1].assignment))
                if self.merges:
                    features = inputs = self.merges[index](inputs, features, graph.mask)
        if self.correction is not None:
            features = attributes + self.correction * features
        last = self.score(-1, *split_nodes(features, rows, columns), mask)
        structure = self.weigh(features, graph)
        a, b = structure[: len(mask), :rows, :rows], structure[len(mask) :, :columns, :columns]
        sure = self.find_partners(features, graph, rows, columns)
        mutual = None if sure is None else pick_mutually(last.unary, mask)
        return Matching(last.unary, last.assignment, a, b, tuple(earlier), matchable=sure, mutual=mutual, alone=alone)

    def weigh(self, features: Float[Tensor, "B K C"], graph: Graph) -> Float[Tensor, "B K K"]:
        """The adjacency with edges weighted by the features of their ends."""
        return graph.adjacency if self.kernel is None else weigh_adjacency(features, graph.adjacency, self.kernel)

    def find_partners(
        self, features: Float[Tensor, "B2 K C"], graph: Graph, rows: int, columns: int
    ) -> tuple[Float[Tensor, "B N"], Float[Tensor, "B M"]] | None:
        """How sure the nodes of either graph are that they have a partner, if the network says so."""
        if self.matchability is None:
            return None
        source, target = self.matchability(features, graph.mask).tensor_split(2)
        return source[:, :rows], target[:, :columns]

    def score(
        self, index: int, source: Float[Tensor, "B N C"], target: Float[Tensor, "B M C"], mask: Bool[Tensor, "B N M"]
    ) -> Stage:
        """Scores of an affinity, and their assignment."""
        scores: Tensor = self.affinities[index](source, target).masked_fill(~mask, 0)
        return Stage(scores, self.assign(scores, mask))
