"""Edges that are learned, and convolutions that smooth or sharpen over them, as in GLMNet."""

from __future__ import annotations

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

from quadmatch.graph import Graph
from quadmatch.layers.nodes import map_nodes


class LearnedEdges(nn.Module):
    """`Ã_ij ∝ exp(σ(θᵀ[x_i ; x_j]))` over the neighbours j of i, rows sum to one; σ is ReLU.

    θ starts positive, because image features are: otherwise ReLU might never let a gradient through.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        bound = 1 / sqrt(channels)
        self.start, self.end = (nn.Parameter(torch.empty(channels).uniform_(0, bound)) for _ in range(2))

    def forward(self, features: Float[Tensor, "B N C"], adjacency: Float[Tensor, "B N N"]) -> Float[Tensor, "B N N"]:
        """The learned adjacency; a row without neighbours is zero."""
        scores = relu((features @ self.start)[:, :, None] + (features @ self.end)[:, None, :])
        present = adjacency != 0
        weights = scores.masked_fill(~present, torch.finfo(scores.dtype).min).softmax(-1)
        return weights.masked_fill(~present, 0)


class BalancedConv(nn.Module):
    """`H' = σ((1 − share) H W_s + share Ã H W_n)`: smooths with a positive share, sharpens with a negative one."""

    def __init__(self, inputs: int, outputs: int, share: float) -> None:
        super().__init__()
        self.share = share
        self.itself, self.neighbours = (nn.Linear(inputs, outputs, bias=False) for _ in range(2))

    def forward(
        self,
        features: Float[Tensor, "B N C"],
        shortcut: Float[Tensor, "B N D"],
        graph: Graph,
        structure: Float[Tensor, "B N N"],
    ) -> Float[Tensor, "B N E"]:
        """Refined features, zero on padding."""
        itself = map_nodes(self.itself, features, graph.mask)
        around = structure @ map_nodes(self.neighbours, features, graph.mask)
        mixed: Tensor = torch.lerp(itself, around, self.share)
        return relu(mixed).masked_fill(~graph.mask[..., None], 0)
