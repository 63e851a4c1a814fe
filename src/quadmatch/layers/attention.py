"""Attention within a graph, which sees where its nodes lie, and between the two graphs of a pair."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quadmatch.graph import Graph
from quadmatch.layers.attributes import centre_points
from quadmatch.layers.nodes import Packing, pack_graph
from quadmatch.solvers.linear.scaling import FAR

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


def list_relations(graph: Graph) -> tuple[Float[Tensor, "Q 7"], Packing]:
    """What is known of every two real nodes, and where they are in [B, N·N]."""
    packing = Packing((graph.mask[:, :, None] & graph.mask[:, None, :]).flatten(1))
    return packing.pack(relate_nodes(graph).flatten(1, 2)), packing


class GeometricBias(nn.Module):
    """A small network from the relation of two nodes to what it adds to their attention, for each head."""

    def __init__(self, heads: int, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(RELATIONS, width), nn.GELU(), nn.Linear(width, heads, bias=False))

    def forward(self, graph: Graph) -> Float[Tensor, "B H N N"]:
        """What is added to the attention to each node, of each other one; padding is not seen."""
        relations, packing = graph.once(list_relations)
        bias = packing.spread(self.layers(relations), fill=FAR)
        return bias.view(*graph.adjacency.shape, bias.shape[-1]).permute(0, 3, 2, 1)


def hide_other(graph: Graph) -> Float[Tensor, "B 1 N 1"] | None:
    """What keeps nodes from seeing the padding of the other graph of their pair; None where there is none."""
    if graph.once(pack_graph).real is None:
        return None
    hidden = ~graph.mask.roll(len(graph.mask) // 2, 0)[:, None, :, None]
    return torch.zeros_like(hidden, dtype=graph.points.dtype).masked_fill(hidden, FAR)


class Attention(nn.Module):
    """`softmax(Q Kᵀ/√d + biasᵀ) V` over several heads, of the real nodes of a batch."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width must be a multiple of heads, got {width} and {heads}")
        self.heads = heads
        self.query, self.output = nn.Linear(width, width), nn.Linear(width, width)
        self.memory = nn.Linear(width, 2 * width)

    def forward(
        self, rows: Float[Tensor, "R C"], packing: Packing, bias: Float[Tensor, "B _ N _"] | None, *, across: bool
    ) -> Float[Tensor, "R C"]:
        """What each node takes from those of its graph or, `across`, from those of the other graph of its pair."""
        query, memory = packing.spread(self.query(rows)), packing.spread(self.memory(rows))
        memory = memory.roll(len(memory) // 2, 0) if across else memory
        query, key, value = (self._split(one) for one in (query, *memory.chunk(2, -1)))
        # Over any dimension but the last, torch's softmax of a few numbers is four times as fast: keys come first.
        scores = key @ query.mT * query.shape[-1] ** -0.5
        scores = scores if bias is None else scores + bias
        # A graph without nodes gives equal weights of values that are all zero.
        taken = scores.softmax(-2).mT @ value
        output: Tensor = self.output(packing.pack(taken.transpose(1, 2).flatten(2)))
        return output

    def _split(self, nodes: Float[Tensor, "B N C"]) -> Float[Tensor, "B H N D"]:
        return nodes.view(*nodes.shape[:2], self.heads, nodes.shape[-1] // self.heads).transpose(1, 2)


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
        packing = graph.once(pack_graph)
        rows = packing.pack(inputs)
        rows = rows + self.dropout(self.within(self.norms[0](rows), packing, self.bias(graph), across=False))
        rows = rows + self.dropout(self.between(self.norms[1](rows), packing, graph.once(hide_other), across=True))
        return packing.spread(rows + self.dropout(self.alone(self.norms[2](rows))))
