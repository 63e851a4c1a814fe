"""SplineConv in plain PyTorch: a continuous convolution kernel over the offset between two nodes."""

from __future__ import annotations

from math import sqrt
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from quadmatch.graph import Graph
from quadmatch.layers.linear import Linear
from quadmatch.layers.nodes import pack_graph

REDUCTIONS = {"max": "amax", "mean": "mean"}
"""What torch calls the ways to aggregate messages."""


def weigh_knots(pseudo: Float[Tensor, "E 2"], kernel_size: int) -> tuple[Int[Tensor, "E 4"], Float[Tensor, "E 4"]]:
    """The four knots around each point of the unit square and their degree-1 (hat) weights.

    The kernel_size² knots of an open spline lie on a regular grid with knots on the border; knot
    (a, b) has index a·kernel_size + b. The four weights sum to 1.
    """
    position = pseudo.clamp(0, 1) * (kernel_size - 1)
    # On a knot both ends are that knot, so that no other one is asked for in vain.
    low, high = position.detach().floor(), position.detach().ceil()
    hats = torch.stack([1 - (position - low), position - low], dim=-1)
    ends = torch.stack([low, high], dim=-1).long()
    index = ends[:, 0, :, None] * kernel_size + ends[:, 1, None, :]
    return index.flatten(1), (hats[:, 0, :, None] * hats[:, 1, None, :]).flatten(1)


class Messages(NamedTuple):
    """Which products of nodes and kernel matrices the edges of some graphs ask for, and how they are mixed."""

    senders: Int[Tensor, " W"]
    """The node of each product, by its place among the real nodes; products lie knot by knot."""
    counts: list[int]
    """Products of each knot."""
    rows: Int[Tensor, "E 4"]
    """The four products of each edge."""
    weights: Float[Tensor, "E 4"]
    receivers: Int[Tensor, " E"]


def plan_messages(graph: Graph, kernel_size: int, extent: float) -> Messages:
    """The messages along the edges of graphs: each product that some edge asks for, once."""
    which, receiver, sender = graph.adjacency.nonzero(as_tuple=True)
    offset = graph.points[which, receiver] - graph.points[which, sender]
    knots, weights = weigh_knots(0.5 + 0.5 * offset / extent, kernel_size)
    places = graph.mask.flatten().cumsum(0).view(graph.mask.shape) - 1
    total = graph.mask.numel()  # At least as many as there are real nodes.
    asked = knots * total + places[which, sender][:, None]
    wanted = torch.zeros(kernel_size**2, total, dtype=torch.bool, device=asked.device)
    wanted.view(-1)[asked] = True
    rows = wanted.view(-1).cumsum(0)[asked] - 1
    return Messages(wanted.nonzero()[:, 1], wanted.sum(1).tolist(), rows, weights, places[which, receiver])


class SplineConv(nn.Module):
    """Spline convolution (Fey et al., SplineCNN, CVPR 2018), degree 1, on padded dense graphs.

    `x'_i = max_{j: A_ij ≠ 0} Σ_k b_k(u_ij) x_j W_k + x_i W_root + bias`,
    `u_ij = ½ + ½ (p_i − p_j) / extent` clipped to the unit square, b_k the product of two hats; the
    aggregate of a node without neighbours is zero. Only the products x_j W_k that some edge asks for
    are computed, each once: the nodes are grouped by knot, one matrix product a knot.
    features [B, N, inputs] → [B, N, outputs].
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
        if aggregation not in REDUCTIONS:
            raise ValueError(f"aggregation must be 'max' or 'mean', got {aggregation!r}")
        self.kernel_size, self.aggregation, self.extent = kernel_size, aggregation, extent
        knots = kernel_size * kernel_size
        bound = 1 / sqrt(inputs * knots)
        self.weight = nn.Parameter(torch.empty(knots, inputs, outputs).uniform_(-bound, bound))
        self.root = Linear(inputs, outputs)
        nn.init.zeros_(self.root.bias)

    def forward(self, features: Float[Tensor, "B N C"], graph: Graph) -> Float[Tensor, "B N D"]:
        """Features of the next layer, zero on padding; edges are the non-zero entries of the adjacency."""
        plan, packing = graph.once(plan_messages, self.kernel_size, self.extent), graph.once(pack_graph)
        nodes = packing.pack(features)
        messages, itself = self._combine(nodes, plan), self.root(nodes)
        receivers = plan.receivers[:, None].expand_as(messages)
        pooled = torch.zeros_like(itself).scatter_reduce(
            0, receivers, messages, REDUCTIONS[self.aggregation], include_self=False
        )
        return packing.spread(pooled + itself)

    def _combine(self, nodes: Tensor, plan: Messages) -> Tensor:
        """Message of each edge [E, D]: four products of its sender with kernel matrices, weighted."""
        # Knot by knot, so that the nodes of one and their products stay in a fast cache.
        groups = zip(torch.split(plan.senders, plan.counts), self.weight.unbind())
        if torch.is_inference_mode_enabled() and nodes.dtype == self.weight.dtype:
            # Where nobody learns from them, products go where they belong at once.
            products = nodes.new_empty(len(plan.senders), self.weight.shape[2])
            for (senders, kernel), place in zip(groups, torch.split(products, plan.counts)):
                torch.mm(nodes.index_select(0, senders), kernel, out=place)
        else:
            products = torch.cat([nodes.index_select(0, senders) @ kernel for senders, kernel in groups])
        if len(plan.rows) == 0:
            return products
        return embedding_bag(plan.rows, products, per_sample_weights=plan.weights.to(products.dtype), mode="sum")
