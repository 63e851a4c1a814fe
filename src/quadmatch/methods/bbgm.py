"""BB-GM: M. Rolínek, P. Swoboda, D. Zietlow, A. Paulus, V. Musil, G. Martius, *Deep Graph Matching via Blackbox
Differentiation of Combinatorial Solvers*, ECCV 2020.

Two SplineConvs correct the image features, x + f(x)/10; nodes and edges are compared under weights of channels
that depend on both pictures (`GlobalAffinity`); a combinatorial solver finds the partial matching of the
largest Σ unary∘X + Σ edge affinities of pairs of matches, and its gradient is black-box differentiation's, λ =
80. In training, true matches are worth `margin` less, so that they must win by it. Trained with the loss
`hamming`.

Chosen: the solver is our own (`find_fixed_point`), because the paper's, LPMP, is a C++ library that does not
install everywhere; it gives no bound. With `maximal`, min(n, m) nodes are matched: BB-GM-Max. Decoding without
`partial` completes a partial matching to a maximal one, in which what the solver left alone is matched anyhow.
"""

from __future__ import annotations

from torch import nn

from quadmatch.graph import GraphPair
from quadmatch.layers.combinatorial import CombinatorialAssign
from quadmatch.layers.cross_graph import join_graphs, join_nodes, split_nodes
from quadmatch.layers.global_affinity import GlobalAffinity
from quadmatch.layers.refinement import RefineLayer
from quadmatch.layers.structure import weigh_pair
from quadmatch.matching import Features, Matching
from quadmatch.methods.dgm import CORRECTION


class BBGM(nn.Module):
    """`channels` image features of a node, `whole` of a picture, `width` between the two SplineConvs."""

    def __init__(
        self,
        *,
        channels: int = 1024,
        whole: int = 512,
        width: int | None = None,
        maximal: bool = False,
        strength: float = 80.0,
        margin: float = 1.0,
        solver_iterations: int = 15,
    ) -> None:
        super().__init__()
        width = width or channels
        self.layers = nn.ModuleList(
            [
                RefineLayer(channels, width, refine="spline"),
                RefineLayer(width, channels, refine="spline", activate=False),
            ]
        )
        self.affinity = GlobalAffinity(channels, whole)
        self.assign = CombinatorialAssign(
            maximal=maximal, strength=strength, margin=margin, iterations=solver_iterations
        )

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """Match every pair of the batch; the assignment is 0/1."""
        graph = join_graphs(pair.source, pair.target)
        features = inputs = join_nodes(source.join(), target.join())
        for layer in self.layers:
            features = layer(features, features, graph, graph.adjacency)
        nodes = split_nodes(inputs + CORRECTION * features, *pair.mask.shape[1:])
        operator = self.affinity(pair, nodes, source, target)
        return Matching(operator.unary, self.assign(operator, pair), *weigh_pair(pair, source, target))
