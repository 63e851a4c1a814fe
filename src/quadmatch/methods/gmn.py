"""GMN: A. Zanfir, C. Sminchisescu, *Deep Learning of Graph Matching*, CVPR 2018.

Learned affinities of nodes and edges, K in Lawler's form (`BlockAffinity`), its leading eigenvector v by power
iteration from an even start, of unit length, and Sinkhorn of 200·v. Trained with the loss `offset`.

Chosen: 25 steps of power iteration without a test whether they are enough, and the softmax at α = 200 before
Sinkhorn, as in the code of PCA-GM's authors, from which the published figures come; at temperature 1/200 the
two are one Sinkhorn. The source is triangulated and the target fully connected; with `complete=False` both are
triangulated, the row GMN_D. For the constraint of qc-GMN, structures are the triangulations weighted by cosines
of the image features.
"""

from __future__ import annotations

import torch
from torch import nn

from quadmatch.graph import GraphPair
from quadmatch.layers.block_affinity import BlockAffinity
from quadmatch.layers.network import Assign
from quadmatch.layers.structure import weigh_pair
from quadmatch.matching import Features, Matching
from quadmatch.solvers.lawler.spectral import spectral


class GMN(nn.Module):
    """`channels` is the number of image features of a node, half of them of the layer that edges are made of."""

    def __init__(
        self,
        *,
        channels: int = 1024,
        complete: bool = True,
        power_iterations: int = 25,
        sharpness: float = 200.0,
        sinkhorn_iterations: int = 20,
    ) -> None:
        super().__init__()
        self.affinity = BlockAffinity(channels // 2, complete=complete)
        self.power_iterations = power_iterations
        self.assign = Assign(1 / sharpness, iterations=sinkhorn_iterations)

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """Match every pair of the batch."""
        operator = self.affinity(pair, source, target)
        leading = spectral(operator, pair.mask, iterations=self.power_iterations, tolerance=0.0)
        length = torch.linalg.vector_norm(leading, dim=(1, 2), keepdim=True)
        scores = leading / length.where(length > 0, 1)
        return Matching(scores, self.assign(scores, pair.mask), *weigh_pair(pair, source, target))
