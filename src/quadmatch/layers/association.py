"""A graph network on the association graph, whose nodes are the candidate matches of two graphs."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from quadmatch.layers.network import Assign
from quadmatch.layers.nodes import map_nodes
from quadmatch.solvers.lawler.operator import AffinityOperator


def count_neighbours(source: Float[Tensor, "B N N"], target: Float[Tensor, "B M M"]) -> Float[Tensor, "B N M"]:
    """Neighbours of each candidate match, itself among them: pairs of an edge at either node."""
    rows, columns = ((adjacency != 0).sum(-1).to(adjacency.dtype) for adjacency in (source, target))
    return rows[:, :, None] * columns[:, None, :] + 1


def _make_mlp(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs), nn.ReLU())


class AssociationConv(nn.Module):
    """`x' = (K f(x)) / |neighbours| + g(x)`, and Sinkhorn of a score of x' as one channel more (Wang et al., NGM).

    f and g are networks of two layers. K is only known by its product with each channel, so that no matrix over
    candidate matches is built. Candidates [B, N, M, inputs] → [B, N, M, outputs + 1], zero on padding.
    """

    def __init__(self, inputs: int, outputs: int, assign: Assign) -> None:
        super().__init__()
        self.neighbours, self.itself = _make_mlp(inputs, outputs), _make_mlp(inputs, outputs)
        # A bias would be the same for all candidates, which Sinkhorn cannot see.
        self.classify = nn.Linear(outputs, 1, bias=False)
        self.assign = assign

    def forward(
        self,
        candidates: Float[Tensor, "B N M C"],
        operator: AffinityOperator,
        counts: Float[Tensor, "B N M"],
        mask: Bool[Tensor, "B N M"],
    ) -> Float[Tensor, "B N M D"]:
        """Candidates of the next layer; nothing reaches a candidate but along pairs of edges."""
        rows, real = candidates.flatten(1, 2), mask.flatten(1)
        both = (map_nodes(one, rows, real) for one in (self.neighbours, self.itself))
        messages, itself = (one.view(*mask.shape, one.shape[-1]) for one in both)
        received = operator(messages.permute(0, 3, 1, 2)).permute(0, 2, 3, 1) / counts[..., None]
        moved = received.masked_fill(~mask[..., None], 0) + itself
        assignment = self.assign(self.classify(moved)[..., 0], mask)
        return torch.cat([moved, assignment[..., None]], -1)
