"""Learned affinities of nodes and edges in Lawler's form, as GMN and NGM have them."""

from __future__ import annotations

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

from quadmatch.graph import GraphPair
from quadmatch.matching import Features
from quadmatch.solvers.lawler.operator import NodeSumAffinity


class BlockAffinity(nn.Module):
    """Unary `U_A U_Bᵀ`, and `Ke = E_A Λ E_Bᵀ` of edges [F_i ; F_j] with `Λ = [[Λ₁, Λ₂], [Λ₂, Λ₁]]`.

    `Λ_i = ReLU(W_i + W_iᵀ)`, W_i from U(±1/√(2·channels)) + I/2 (Zanfir and Sminchisescu, CVPR 2018, and the code of
    PCA-GM). With blocks in that order an edge's affinity is a sum of affinities of its ends, so that no matrix over
    edges is needed. U is relu4_2 and F relu5_1 at a node, `channels` of the latter. With `complete`, all nodes of the
    target are joined; else the target has its own edges.
    """

    def __init__(self, channels: int, *, complete: bool = True) -> None:
        super().__init__()
        self.complete = complete
        bound = 1 / sqrt(2 * channels)
        self.same, self.crossed = (
            nn.Parameter(torch.empty(channels, channels).uniform_(-bound, bound) + torch.eye(channels) / 2)
            for _ in range(2)
        )

    def forward(self, pair: GraphPair, source: Features, target: Features) -> NodeSumAffinity:
        """The product with the affinities of each pair, zero on padding."""
        unary, same, crossed = (
            scores.masked_fill(~pair.mask, 0)
            for scores in (
                source.local @ target.local.mT,
                source.edge @ relu(self.same + self.same.mT) @ target.edge.mT,
                source.edge @ relu(self.crossed + self.crossed.mT) @ target.edge.mT,
            )
        )
        edges = self._join_all(pair) if self.complete else pair.target.adjacency.to(unary.dtype)
        return NodeSumAffinity(unary, same, crossed, pair.source.adjacency.to(unary.dtype), edges.to(unary.dtype))

    def _join_all(self, pair: GraphPair) -> Float[Tensor, "B M M"]:
        real = pair.target.mask
        itself = torch.eye(real.shape[1], dtype=torch.bool, device=real.device)
        return (real[:, :, None] & real[:, None, :] & ~itself).float()
