"""Attention within a graph, which sees where its nodes lie, and between the two graphs of a pair."""

from __future__ import annotations

from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from quadmatch.graph import Graph
from quadmatch.layers.attributes import centre_points
from quadmatch.layers.linear import Linear
from quadmatch.layers.nodes import pack_graph
from quadmatch.solvers.linear.scaling import FAR

RELATIONS = 7
"""What is known of two nodes of a graph: offset and distance in two frames, and whether an edge joins them."""
LANES = 16
"""Numbers that a processor computes at once, at most."""


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


def list_relations(graph: Graph) -> tuple[Float[Tensor, "Q 7"], Int[Tensor, " Q"]]:
    """What is known of every two real nodes, and where the two are in the scores of a head, [B, room, room]."""
    which, node, other = (graph.mask[:, :, None] & graph.mask[:, None, :]).nonzero(as_tuple=True)
    room = find_room(graph)
    return relate_nodes(graph)[which, node, other], (which * room + other) * room + node


def find_room(graph: Graph) -> int:
    """Nodes that attention has room for in each graph: with whole vectors, softmax takes a fourth of the time."""
    return max(1, -(-graph.mask.shape[1] // LANES)) * LANES


def find_places(graph: Graph, parts: int, across: bool) -> Int[Tensor, " R_parts"]:
    """Where each part of a real node's channels goes in [parts, B, room]; `across`, to the other graph of its pair."""
    which, node = graph.mask.nonzero(as_tuple=True)
    graphs = len(graph.mask)
    which = (which + graphs // 2) % graphs if across else which
    first = torch.arange(parts, device=node.device) * graphs
    return ((first + which[:, None]) * find_room(graph) + node[:, None]).flatten()


def hide_other(graph: Graph, heads: int) -> Float[Tensor, "HB room 1"]:
    """What keeps nodes from seeing the padding of the other graph of their pair."""
    other = pad(graph.mask.roll(len(graph.mask) // 2, 0), (0, find_room(graph) - graph.mask.shape[1]))
    hidden = torch.zeros_like(other, dtype=graph.points.dtype).masked_fill(~other, FAR)
    return hidden.repeat(heads, 1)[:, :, None]


class GeometricBias(nn.Module):
    """A small network from the relation of two nodes to what it adds to their attention, for each head."""

    def __init__(self, heads: int, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(RELATIONS, width), nn.GELU(), nn.Linear(width, heads, bias=False))

    def forward(self, graph: Graph) -> Float[Tensor, "HB room room"]:
        """What is added to the attention to each node (rows), of each other one (columns); padding is not seen."""
        (relations, places), room = graph.once(list_relations), find_room(graph)
        first, activate, last = self.layers
        # The transpose of what the last layer gives: one row a head.
        values = linear(cast(nn.Linear, last).weight, activate(first(relations)))
        bias = values.new_full((len(values), len(graph.mask) * room * room), FAR).index_copy_(1, places, values)
        return bias.view(-1, room, room)


class Attention(nn.Module):
    """`softmax(Q Kᵀ/√d + biasᵀ) V` over several heads, of the real nodes of a batch."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width must be a multiple of heads, got {width} and {heads}")
        self.heads = heads
        self.query, self.output = Linear(width, width), Linear(width, width)
        self.memory = Linear(width, 2 * width)

    def forward(
        self, rows: Float[Tensor, "R C"], graph: Graph, bias: Float[Tensor, "HB room _"], *, across: bool
    ) -> Float[Tensor, "R C"]:
        """What each node takes from those of its graph or, `across`, from those of the other graph of its pair."""
        query = self._spread(self.query(rows), graph.once(find_places, self.heads, False), graph)
        memory = self._spread(self.memory(rows), graph.once(find_places, 2 * self.heads, across), graph)
        key, value = memory.chunk(2)
        # Over any dimension but the last, torch's softmax of a few numbers is four times as fast: keys come first.
        scores = torch.baddbmm(bias, key, query.mT, alpha=query.shape[-1] ** -0.5)
        # A graph without nodes gives equal weights of values that are all zero.
        taken = torch.bmm(scores.softmax(1).mT, value).flatten(0, 1)
        output: Tensor = self.output(taken.index_select(0, graph.once(find_places, self.heads, False)).view(rows.shape))
        return output

    def _spread(
        self, rows: Float[Tensor, "R C"], places: Int[Tensor, " S"], graph: Graph
    ) -> Float[Tensor, "PB room D"]:
        """The channels of all nodes, part by part, and zeros on padding."""
        room, depth = find_room(graph), self.query.out_features // self.heads
        graphs = len(graph.mask) * rows.shape[1] // depth
        return (
            rows.new_zeros(graphs * room, depth)
            .index_copy_(0, places, rows.reshape(-1, depth))
            .view(graphs, room, depth)
        )


class AttentionLayer(nn.Module):
    """Within each graph, between the two, and each node by itself; each step is added to what was there.

    The sources are the first half of the batch and the targets the second, as `SiameseNetwork` has them.
    """

    def __init__(self, width: int, *, heads: int = 8, expansion: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        self.bias = GeometricBias(heads)
        self.within, self.between = Attention(width, heads), Attention(width, heads)
        self.alone = nn.Sequential(Linear(width, expansion * width), nn.GELU(), Linear(expansion * width, width))
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
        hidden, (first, second, third) = graph.once(hide_other, self.between.heads), self.norms
        rows = rows + self.dropout(self.within(first(rows), graph, self.bias(graph), across=False))
        rows = rows + self.dropout(self.between(second(rows), graph, hidden, across=True))
        return packing.spread(rows + self.dropout(self.alone(third(rows))))
