"""Both graphs of a pair as one batch, and what one graph tells the other."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import pad, relu

from quadmatch.graph import Graph
from quadmatch.layers.nodes import map_nodes


def join_nodes(source: Float[Tensor, "B N C"], target: Float[Tensor, "B M C"]) -> Float[Tensor, "B2 K C"]:
    """Rows of the sources, then of the targets, padded with zeros to the larger number of nodes."""
    nodes = max(source.shape[1], target.shape[1])
    return torch.cat([pad(rows, (0, 0, 0, nodes - rows.shape[1])) for rows in (source, target)])


def join_graphs(source: Graph, target: Graph) -> Graph:
    """Sources, then targets, as one batch in which edges to padding are removed."""
    nodes = max(source.mask.shape[1], target.mask.shape[1])
    masks, edges = [], []
    for graph in (source, target):
        extra = nodes - graph.mask.shape[1]
        real = graph.mask[:, :, None] & graph.mask[:, None, :]
        edges.append(pad(graph.adjacency.masked_fill(~real, 0), (0, extra, 0, extra)))
        masks.append(pad(graph.mask, (0, extra)))
    return Graph(join_nodes(source.points, target.points), torch.cat(masks), torch.cat(edges))


def concatenate_other(
    source: Float[Tensor, "B N C"], target: Float[Tensor, "B M C"], assignment: Float[Tensor, "B N M"]
) -> tuple[Float[Tensor, "B N C2"], Float[Tensor, "B M C2"]]:
    """`[P_A ; S P_B]` and `[P_B ; Sᵀ P_A]`: each node beside what it is matched to so far."""
    return (
        torch.cat([source, assignment @ target], dim=-1),
        torch.cat([target, assignment.mT @ source], dim=-1),
    )


class Merge(nn.Module):
    """What `concatenate_other` gives, back at its width: `LayerNorm(shortcut + dropout(σ(x W + b)))`, σ ReLU."""

    def __init__(self, width: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(
        self,
        both: Float[Tensor, "B N C2"],
        shortcut: Float[Tensor, "B N C"],
        mask: Bool[Tensor, "B N"],
    ) -> Float[Tensor, "B N C"]:
        """Features of each node that know what it is matched to so far, zero on padding."""
        merged = self.dropout(relu(map_nodes(self.linear, both, mask)))
        return map_nodes(self.norm, shortcut + merged, mask)
