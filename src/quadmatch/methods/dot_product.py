"""Nothing trained: what the ImageNet network says of two keypoints, and the graphs as they are."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn

from quadmatch.graph import GraphPair
from quadmatch.matching import Features, Matching
from quadmatch.solvers.linear.sinkhorn import sinkhorn


class DotProduct(nn.Module):
    """`s = U_A U_Bᵀ + F_A F_Bᵀ` of node and edge read-outs, Sinkhorn of s; structures are the adjacencies.

    The row of papers that is called "nothing trained" is the Hungarian match of this s. The assignment is
    sharp at a low `temperature`, so that decoding sees nearly the same optimum in it.
    """

    def __init__(self, *, temperature: float = 0.1, sinkhorn_iterations: int = 30) -> None:
        super().__init__()
        self.temperature, self.sinkhorn_iterations = temperature, sinkhorn_iterations

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """Scores in [0, 2] for read-outs that are normalised and not negative."""
        scores = source.local @ target.local.mT + source.edge @ target.edge.mT
        scores = scores.masked_fill(~pair.mask, 0)
        return Matching(scores, self.assign(scores, pair.mask), pair.source.adjacency, pair.target.adjacency)

    def assign(self, scores: Float[Tensor, "B N M"], mask: Bool[Tensor, "B N M"]) -> Float[Tensor, "B N M"]:
        """The assignment that scores give at this temperature."""
        return sinkhorn(scores, mask, temperature=self.temperature, iterations=self.sinkhorn_iterations)
