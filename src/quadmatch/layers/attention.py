"""Attention within a graph, which sees where its nodes lie, and between the two graphs of a pair."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from quadmatch.graph import Graph
from quadmatch.layers.attributes import centre_points
from quadmatch.layers.nodes import map_nodes

RELATIONS = 7
"""What is known of two nodes of a graph: offset and distance in two frames, and whether an edge joins them."""


def relate_nodes(graph: Graph, extent: float = 256.0) -> Float[Tensor, "B N N 7"]:
    """Offset and distance of every two nodes, in the frame of the box and in that of the graph, and their edge."""
    frames = graph.points / extent, centre_points(graph.points, graph.mask)
    related = []
    for points in frames:
        offset = points[:, :, None] - points[:, None, :]
        distance = (offset.square().sum(-1, keepdim=True) + 1e-6).sqrt()
        related += [offset, distance]
    joined = (graph.adjacency != 0).to(graph.points.dtype)[..., None]
    return torch.cat([*related, joined], -1)


class GeometricBias(nn.Module):
    """A small network from the relation of two nodes to what it adds to their attention, for each head."""

    def __init__(self, heads: int, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(RELATIONS, width), nn.GELU(), nn.Linear(width, heads, bias=False))

    def forward(self, graph: Graph) -> Float[Tensor, "B H N N"]:
        """What is added to the attention of each node to each other."""
        both = graph.mask[:, :, None] & graph.mask[:, None, :]
        bias: Tensor = map_nodes(self.layers, relate_nodes(graph).flatten(1, 2), both.flatten(1))
        return bias.view(*both.shape, bias.shape[-1]).movedim(-1, 1)


class Attention(nn.Module):
    """`softmax(Q Kᵀ/√d + bias) V` over several heads; padding is neither seen nor written to."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width must be a multiple of heads, got {width} and {heads}")
        self.heads = heads
        self.query, self.output = nn.Linear(width, width), nn.Linear(width, width)
        self.memory = nn.Linear(width, 2 * width)

    def forward(
        self,
        nodes: Float[Tensor, "B N C"],
        others: Float[Tensor, "B M C"],
        mask: Bool[Tensor, "B N"],
        others_mask: Bool[Tensor, "B M"],
        bias: Float[Tensor, "B H N M"] | None = None,
    ) -> Float[Tensor, "B N C"]:
        """What each node takes from the others, zero on padding."""
        query = self._split(map_nodes(self.query, nodes, mask))
        key, value = (self._split(one) for one in map_nodes(self.memory, others, others_mask).chunk(2, -1))
        scores = query @ key.mT / query.shape[-1] ** 0.5
        scores = scores if bias is None else scores + bias
        hidden = ~others_mask[:, None, None, :]
        # A graph without nodes gives equal weights of values that are all zero.
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
        return map_nodes(self.output, (weights @ value).transpose(1, 2).flatten(2), mask)

    def _split(self, nodes: Float[Tensor, "B N C"]) -> Float[Tensor, "B H N D"]:
        batch, count, width = nodes.shape
        return nodes.view(batch, count, self.heads, width // self.heads).transpose(1, 2)


class AttentionLayer(nn.Module):
    """Within each graph, between the two, and each node by itself; each step is added to what was there.

    The sources are the first half of the batch and the targets the second, as `SiameseNetwork` has them.
    """

    def __init__(self, width: int, *, heads: int = 8, expansion: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        self.bias = GeometricBias(heads)
        self.within, self.between = Attention(width, heads), Attention(width, heads)
        self.alone = nn.Sequential(nn.Linear(width, expansion * width), nn.GELU(), nn.Linear(expansion * width, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        inputs: Float[Tensor, "B N C"],
        shortcut: Float[Tensor, "B N C"],
        graph: Graph,
        structure: Float[Tensor, "B N N"],
    ) -> Float[Tensor, "B N C"]:
        """Features that know their own graph and the other one."""
        mask, half = graph.mask, len(graph.mask) // 2
        nodes = map_nodes(self.norms[0], inputs, mask)
        inputs = inputs + self.dropout(self.within(nodes, nodes, mask, mask, self.bias(graph)))
        nodes = map_nodes(self.norms[1], inputs, mask)
        inputs = inputs + self.dropout(self.between(nodes, nodes.roll(half, 0), mask, mask.roll(half, 0)))
        inputs = inputs + self.dropout(map_nodes(lambda rows: self.alone(self.norms[2](rows)), inputs, mask))
        return inputs
