"""GLMNet: B. Jiang, P. Sun, J. Tang, B. Luo, *GLMNet: Graph Learning-Matching Networks for Feature Matching*,
arXiv 1911.07681 (Pattern Recognition 2022).

Edges of both graphs are learned from the image features (`LearnedEdges`); a smoothing convolution σ((1 − γ) X
Θ_n + γ Ã X Θ_e), a cross-graph step [X ; C Y] Θ, a sharpening convolution σ((1 + γ̃) X Θ_n − γ̃ Ã X Θ_e); a
bilinear affinity and Sinkhorn. γ = 0.5, γ̃ = 0.75. Trained with the loss `permutation`, `conflict` 0.1.

Chosen, because no code was published: C of the cross-graph step is the assignment (Sinkhorn) of its exp(X W
Yᵀ/δ), so that it has a scale; δ, for both Sinkhorns, is 1/20; the maps Θ have no bias. The constraint compares
the learned edges.
"""

from __future__ import annotations

from quadmatch.layers.affinity import BilinearAffinity
from quadmatch.layers.attributes import NodeAttributes
from quadmatch.layers.cross_graph import LinearMerge
from quadmatch.layers.learned_graph import BalancedConv, LearnedEdges
from quadmatch.layers.network import Assign, SiameseNetwork
from quadmatch.layers.refinement import stack_layers


def build_glmnet(
    *,
    channels: int = 1024,
    width: int = 2048,
    smoothing: float = 0.5,
    sharpening: float = 0.75,
    temperature: float = 0.05,
    sinkhorn_iterations: int = 20,
) -> SiameseNetwork:
    """`smoothing` and `sharpening` are the weights of neighbours, γ and γ̃."""
    stack, affinities = stack_layers(
        lambda inputs, outputs, last: BalancedConv(inputs, outputs, -sharpening if last else smoothing),
        BilinearAffinity,
        [channels, width, width],
        cross_graph=True,
        merge=True,
    )
    return SiameseNetwork(
        NodeAttributes(channels, prior=False),
        stack,
        affinities,
        Assign(temperature, iterations=sinkhorn_iterations),
        merges=[LinearMerge(width)],
        edges=LearnedEdges(channels),
    )
