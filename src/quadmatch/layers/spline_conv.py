"""SplineConv in plain PyTorch: a continuous convolution kernel over the offset between two nodes."""

from __future__ import annotations

from math import sqrt
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from quadmatch.layers.nodes import map_nodes


def weigh_knots(pseudo: Float[Tensor, "E 2"], kernel_size: int) -> tuple[Int[Tensor, "E 4"], Float[Tensor, "E 4"]]:
    """The four knots around each point of the unit square and their degree-1 (hat) weights.

    The kernel_size² knots of an open spline lie on a regular grid with knots on the border; knot
    (a, b) has index a·kernel_size + b. The four weights sum to 1.
    """
    position = pseudo.clamp(0, 1) * (kernel_size - 1)
    low = position.detach().floor().clamp(max=kernel_size - 2)
    high_weight = position - low
    hats = torch.stack([1 - high_weight, high_weight], dim=-1)
    ends = low.long()[..., None] + torch.arange(2, device=pseudo.device)
    index = ends[:, 0, :, None] * kernel_size + ends[:, 1, None, :]
    return index.flatten(1), (hats[:, 0, :, None] * hats[:, 1, None, :]).flatten(1)


class SplineConv(nn.Module):
    """Spline convolution (Fey et al., SplineCNN, CVPR 2018), degree 1, on padded dense graphs.

    `x'_i = max_{j: A_ij ≠ 0} Σ_k b_k(u_ij) x_j W_k + x_i W_root + bias`,
    `u_ij = ½ + ½ (p_i − p_j) / extent` clipped to the unit square, b_k the product of two hats; the
    aggregate of a node without neighbours is zero. Only the products x_j W_k that some edge asks for
    are computed, each once: the nodes are grouped by knot, one matrix product a knot.
    features [B, N, inputs] → [B, N, outputs], zero where a mask of the nodes is given and False.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        kernel_size: int = 5,
        aggregation: Literal["max", "mean"] = "max",
        extent: float = 256.0,
    ) -> None:
        super().__init__()
        if kernel_size < 2:
            raise ValueError(f"kernel_size must be at least 2, got {kernel_size}")
        if aggregation not in ("max", "mean"):
            raise ValueError(f"aggregation must be 'max' or 'mean', got {aggregation!r}")
        self.kernel_size, self.aggregation, self.extent = kernel_size, aggregation, extent
        knots = kernel_size * kernel_size
        bound = 1 / sqrt(inputs * knots)
        self.weight = nn.Parameter(torch.empty(knots, inputs, outputs).uniform_(-bound, bound))
        self.root = nn.Linear(inputs, outputs)
        nn.init.zeros_(self.root.bias)

    def forward(
        self,
        features: Float[Tensor, "B N C"],
        points: Float[Tensor, "B N 2"],
        adjacency: Float[Tensor, "B N N"],
        mask: Bool[Tensor, "B N"] | None = None,
    ) -> Float[Tensor, "B N D"]:
        """Features of the next layer; edges are the non-zero entries of the adjacency."""
        batch, nodes, _ = features.shape
        graph, receiver, sender = adjacency.nonzero(as_tuple=True)
        offset = points[graph, receiver] - points[graph, sender]
        knot, weight = weigh_knots(0.5 + 0.5 * offset / self.extent, self.kernel_size)
        messages = self._combine(features.flatten(0, 1), graph * nodes + sender, knot, weight)
        # Rows of `nonzero` come sorted by receiver, so that the edges of a node are one segment.
        degree = torch.bincount(graph * nodes + receiver, minlength=batch * nodes)
        pooled = torch.segment_reduce(messages, self.aggregation, lengths=degree, unsafe=True)
        pooled = torch.where(degree[:, None] > 0, pooled, pooled.new_zeros(()))
        itself = map_nodes(self.root, features, mask)
        return pooled.view_as(itself) + itself

    def _combine(self, features: Tensor, sender: Tensor, knot: Tensor, weight: Tensor) -> Tensor:
        """Message of each edge [E, D]: four products of its sender with kernel matrices, weighted."""
        wanted, row = torch.unique(knot * len(features) + sender[:, None], return_inverse=True)
        counts = torch.bincount(wanted // max(len(features), 1), minlength=len(self.weight)).tolist()
        groups = torch.split(features[wanted % max(len(features), 1)], counts)
        products = torch.cat([group @ kernel for group, kernel in zip(groups, self.weight.unbind())])
        if len(row) == 0:
            return products
        return embedding_bag(row, products, per_sample_weights=weight.to(products.dtype), mode="sum")
