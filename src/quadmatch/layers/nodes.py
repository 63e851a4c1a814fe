"""Work on the real nodes of a padded batch only."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.graph import Graph


class Packing:
    """Where the real nodes of a padded batch are: `pack` lists them, `spread` puts a list of them back.

    Graphs of three and of twenty nodes share a batch: wide products on padding would double a step.
    """

    def __init__(self, mask: Bool[Tensor, "B N"]) -> None:
        self.shape, self.real = mask.shape, None if bool(mask.all()) else mask.flatten().nonzero()[:, 0]

    def pack(self, nodes: Float[Tensor, "B N C"]) -> Float[Tensor, "R C"]:
        """Features of the real nodes, one after the other."""
        rows = nodes.flatten(0, 1)
        return rows if self.real is None else rows.index_select(0, self.real)

    def spread(self, rows: Float[Tensor, "R C"], fill: float = 0.0) -> Float[Tensor, "B N C"]:
        """The rows at their places, and `fill` on padding."""
        if self.real is not None:
            rows = rows.new_full((self.shape.numel(), rows.shape[1]), fill).index_copy_(0, self.real, rows)
        return rows.view(*self.shape, rows.shape[1])


def pack_graph(graph: Graph) -> Packing:
    """Where the real nodes of graphs are."""
    return Packing(graph.mask)


def map_nodes(
    function: Callable[[Tensor], Tensor], features: Float[Tensor, "B N C"], mask: Bool[Tensor, "B N"] | None
) -> Float[Tensor, "B N D"]:
    """`function` of each real node's features, zero on padding; without a mask every node is real."""
    if mask is None:
        return function(features)
    packing = Packing(mask)
    return packing.spread(function(packing.pack(features)))
