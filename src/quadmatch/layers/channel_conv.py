"""Channel-independent convolution of CIE: every channel of a node has its own weight of every edge."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

from quadmatch.graph import Graph
from quadmatch.layers.graph_conv import normalise_columns
from quadmatch.layers.nodes import map_nodes


class ChannelConv(nn.Module):
    """`H_q' = σ(Σ_j Ã_ij (E W_e)_ijq (H W_n)_jq) + σ((H W_s)_iq)` and `E' = σ(E W_e)`, σ ReLU, all with biases.

    Yu, Wang, Yan, Li, *Learning Deep Graph Matching with Channel-Independent Embedding and Hungarian Attention*,
    ICLR 2020. The first layer's E is `exp(−length/extent)`, one channel; a later layer's is the E' of the layer
    `before` it. Ã has normalised columns. Edges are a list, so that no tensor has room for edges that are not there.
    """

    def __init__(self, inputs: int, outputs: int, before: ChannelConv | None = None, *, extent: float = 256.0) -> None:
        super().__init__()
        # In a tuple, which torch does not look into: the parameters of that layer are not this one's.
        self.before: tuple[ChannelConv | None] = (before,)
        self.extent = extent
        self.outputs = outputs
        self.edges = nn.Linear(1 if before is None else before.outputs, outputs)
        self.neighbours, self.itself = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs)

    def forward(
        self,
        features: Float[Tensor, "B N C"],
        shortcut: Float[Tensor, "B N D"],
        graph: Graph,
        structure: Float[Tensor, "B N N"],
    ) -> Float[Tensor, "B N E"]:
        """Refined features, zero on padding."""
        which, receiver, sender = structure.nonzero(as_tuple=True)
        weights = normalise_columns(structure)[which, receiver, sender][:, None]
        offsets = graph.points[which, receiver] - graph.points[which, sender]
        edges = self.embed(offsets.to(features.dtype))
        nodes = features.shape[1]
        messages = map_nodes(self.neighbours, features, graph.mask).flatten(0, 1)[which * nodes + sender]
        sums = messages.new_zeros(len(features) * nodes, messages.shape[1])
        sums = sums.index_add(0, which * nodes + receiver, weights * edges * messages)
        itself = map_nodes(self.itself, features, graph.mask)
        return relu(sums.view_as(itself)) + relu(itself).masked_fill(~graph.mask[..., None], 0)

    def embed(self, offsets: Float[Tensor, "K 2"]) -> Float[Tensor, "K E"]:
        """The channels E W_e of edges between points so far apart."""
        before = self.before[0]
        if before is not None:
            embedded: Tensor = self.edges(relu(before.embed(offsets)))
            return embedded
        length = torch.linalg.vector_norm(offsets, dim=-1, keepdim=True)
        first: Tensor = self.edges((-length / self.extent).exp())
        return first
