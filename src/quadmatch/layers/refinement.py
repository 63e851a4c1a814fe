"""One step of refinement: a convolution over the graph, with or without a residual connection."""

from __future__ import annotations

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

from quadmatch.graph import Graph
from quadmatch.layers.graph_conv import GraphConv
from quadmatch.layers.nodes import map_nodes
from quadmatch.layers.spline_conv import SplineConv

Refine = Literal["gcn", "spline"]


class RefineLayer(nn.Module):
    """GraphConv or SplineConv; with `residual`, `LayerNorm(shortcut + dropout(convolution))`.

    SplineConv looks at the points and at which edges exist, GraphConv at the weights of the structure.
    GraphConv brings its own ReLU; `activate` puts one after SplineConv, whose kernel extends over `reach` pixels.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        refine: Refine = "gcn",
        form: Literal["paper", "released"] = "released",
        reach: float = 256.0,
        activate: bool = True,
        residual: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if refine not in ("gcn", "spline"):
            raise ValueError(f"refine must be 'gcn' or 'spline', got {refine!r}")
        self.convolution: GraphConv | SplineConv
        if refine == "gcn":
            self.convolution = GraphConv(inputs, outputs, form=form)
        else:
            self.convolution = SplineConv(inputs, outputs, extent=reach)
        self.outputs, self.activate = outputs, activate
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(outputs) if residual else None

    def forward(
        self,
        features: Float[Tensor, "B N C"],
        shortcut: Float[Tensor, "B N D"],
        graph: Graph,
        structure: Float[Tensor, "B N N"],
    ) -> Float[Tensor, "B N E"]:
        """Refined features; `shortcut` is used only with `residual`."""
        refined: Tensor
        if isinstance(self.convolution, SplineConv):
            refined = self.convolution(features, graph.points, graph.adjacency, graph.mask)
            refined = relu(refined) if self.activate else refined
        else:
            refined = self.convolution(features, structure, graph.mask)
        refined = self.dropout(refined)
        return refined if self.norm is None else map_nodes(self.norm, shortcut + refined, graph.mask)
