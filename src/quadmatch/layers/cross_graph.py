"""Both graphs of a pair as one batch, and what one graph tells the other."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import pad, relu

from quadmatch.graph import Graph
from quadmatch.layers.nodes import map_nodes


def join_nodes(source: Float[Tensor, "B N C"], target: Float[Tensor, "B M C"]) -> Float[Tensor, "B2 K C"]:
    """Rows of the sources, then of the targets, padded with zeros to the larger number of nodes."""
    nodes = max(source.shape[1], target.shape[1])
    # What needs no padding would be copied by `pad` all the same.
    both = (
        rows if rows.shape[1] == nodes else pad(rows, (0, 0, 0, nodes - rows.shape[1])) for rows in (source, target)
    )
    return torch.cat(list(both))


def split_nodes(
    both: Float[Tensor, "B2 K C"], rows: int, columns: int
) -> tuple[Float[Tensor, "B N C"], Float[Tensor, "B M C"]]:
    """What `join_nodes` joined: the sources' first `rows` nodes and the targets' first `columns`."""
    source, target = both.tensor_split(2)
    return source[:, :rows], target[:, :columns]


def join_graphs(source: Graph, target: Graph) -> Graph:
    """Sources, then targets, as one batch in which edges to padding are removed."""
    both = Graph.cat([source, target])
    real = both.mask[:, :, None] & both.mask[:, None, :]
    return replace(both, adjacency=both.adjacency.masked_fill(~real, 0))


def concatenate_other(
    source: Float[Tensor, "B N C"], target: Float[Tensor, "B M C"], assignment: Float[Tensor, "B N M"]
) -> tuple[Float[Tensor, "B N C2"], Float[Tensor, "B M C2"]]:
    """`[P_A ; S P_B]` and `[P_B ; Sᵀ P_A]`: each node beside what it is matched to so far."""
    return (torch.cat([source, assignment @ target], dim=-1), torch.cat([target, assignment.mT @ source], dim=-1))


class Merge(nn.Module):
    """What `concatenate_other` gives, back at its width: `LayerNorm(shortcut + dropout(σ(x W + b)))`, σ ReLU."""

    def __init__(self, width: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(
        self, both: Float[Tensor, "B N C2"], shortcut: Float[Tensor, "B N C"], mask: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N C"]:
        """Features of each node that know what it is matched to so far, zero on padding."""
        merged = self.dropout(relu(map_nodes(self.linear, both, mask)))
        return map_nodes(self.norm, shortcut + merged, mask)


class LinearMerge(nn.Module):
    """What `concatenate_other` gives, back at its width by one linear map, as in PCA-GM."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * width, width)

    def forward(
        self, both: Float[Tensor, "B N C2"], shortcut: Float[Tensor, "B N C"], mask: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N C"]:
        """Features of each node that know what it is matched to so far, zero on padding."""
        return map_nodes(self.linear, both, mask)
