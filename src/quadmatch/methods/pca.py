"""PCA-GM: R. Wang, J. Yan, X. Yang, *Learning Combinatorial Embedding Networks for Deep Graph Matching*, ICCV
2019.

Two graph convolutions H' = Ã σ(H W_a + b_a) + σ(H W_s + b_s), bilinear affinities, and between the layers a
cross-graph step H_A ← [H_A ; S H_B] W + b with the assignment S so far; Sinkhorn of the last affinity.

Chosen: affinities are symmetric and Sinkhorn is at temperature 1/20, as in the authors' first release (the
paper writes 1/200); structures for the constraint of qc-PCA are the adjacencies weighted by cosines of the last
features. PCA-H and PCA-F are this network with the loss `hungarian_attention` or `false_matching`.
"""

from __future__ import annotations

from quadmatch.layers.affinity import BilinearAffinity
from quadmatch.layers.attributes import NodeAttributes
from quadmatch.layers.cross_graph import LinearMerge
from quadmatch.layers.network import Assign, SiameseNetwork
from quadmatch.layers.refinement import RefineLayer, stack_layers


def build_pca(
    *,
    channels: int = 1024,
    width: int = 2048,
    layers: int = 2,
    temperature: float = 0.05,
    sinkhorn_iterations: int = 20,
) -> SiameseNetwork:
    """`channels` is the number of image features of a node, `width` that after each layer."""
    stack, affinities = stack_layers(
        lambda inputs, outputs, last: RefineLayer(inputs, outputs),
        BilinearAffinity,
        [channels, *[width] * layers],
        cross_graph=True,
        merge=True,
    )
    return SiameseNetwork(
        NodeAttributes(channels, prior=False),
        stack,
        affinities,
        Assign(temperature, iterations=sinkhorn_iterations),
        merges=[LinearMerge(width) for _ in stack[1:]],
        kernel="cosine",
        plain_layers=layers,
    )
