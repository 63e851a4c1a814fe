"""Graph convolutions of qc-DGM₁: one set of weights for the neighbours, one for the node itself."""

from __future__ import annotations

from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import relu

from quadmatch.layers.nodes import map_nodes


def normalise_columns(adjacency: Float[Tensor, "B N N"]) -> Float[Tensor, "B N N"]:
    """Each column divided by the sum of its absolute values; a column of zeros stays zero."""
    total = adjacency.abs().sum(-2, keepdim=True)
    return adjacency / total.masked_fill(total == 0, 1)


class GraphConv(nn.Module):
    """One graph convolution in either of the two forms that qc-DGM knows.

    Paper (arXiv 2103.06643, eq. 5): `P' = σ(A P W_r + P W_s)`, no bias, A as it comes.
    Released code: `P' = Ã σ(P W_r + b_r) + σ(P W_s + b_s)`, Ã with normalised columns.
    σ is ReLU; features [B, N, inputs] and adjacency [B, N, N] give [B, N, outputs], zero where a mask of
    the nodes is given and False.
    """

    def __init__(self, inputs: int, outputs: int, *, form: Literal["paper", "released"] = "released") -> None:
        super().__init__()
        if form not in ("paper", "released"):
            raise ValueError(f"form must be 'paper' or 'released', got {form!r}")
        self.form = form
        self.neighbours = nn.Linear(inputs, outputs, bias=form == "released")
        self.itself = nn.Linear(inputs, outputs, bias=form == "released")

    def forward(
        self,
        features: Float[Tensor, "B N C"],
        adjacency: Float[Tensor, "B N N"],
        mask: Bool[Tensor, "B N"] | None = None,
    ) -> Float[Tensor, "B N D"]:
        """Features of the next layer; nothing reaches a node but along its edges."""
        neighbours = map_nodes(self.neighbours, features, mask)
        itself = map_nodes(self.itself, features, mask)
        if self.form == "paper":
            return relu(adjacency @ neighbours + itself)
        return normalise_columns(adjacency) @ relu(neighbours) + relu(itself)
