"""One step of refinement: a convolution over the graph, with or without a residual connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

from quadmatch.graph import Graph
from quadmatch.layers.graph_conv import GraphConv
from quadmatch.layers.nodes import pack_graph
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
            refined = self.convolution(features, graph)
            refined = relu(refined) if self.activate else refined
        else:
            refined = self.convolution(features, structure, graph.mask)
        refined = self.dropout(refined)
        if self.norm is None:
            return refined
        packing = graph.once(pack_graph)
        return packing.spread(self.norm(packing.pack(shortcut + refined)))


def stack_layers(
    make_layer: Callable[[int, int, bool], nn.Module],
    make_affinity: Callable[[int], nn.Module],
    widths: Sequence[int],
    *,
    cross_graph: bool = False,
    merge: bool = False,
) -> tuple[list[nn.Module], list[nn.Module]]:
    """Layers from each width to the next, and an affinity for the last, or for each with a cross-graph step.

    `make_layer(inputs, outputs, last)` makes a layer. What a cross-graph step concatenates doubles the inputs
    of the next layer, unless it is merged.
    """
    if len(widths) < 2:
        raise ValueError(f"layers must be at least 1, got {len(widths) - 1}")
    layers: list[nn.Module] = []
    affinities: list[nn.Module] = []
    inputs = widths[0]
    for remaining, outputs in zip(reversed(range(len(widths) - 1)), widths[1:]):
        layers.append(make_layer(inputs, outputs, not remaining))
        if cross_graph or not remaining:
            affinities.append(make_affinity(outputs))
        inputs = 2 * outputs if cross_graph and not merge else outputs
    return layers, affinities
