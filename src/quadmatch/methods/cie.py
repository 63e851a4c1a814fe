"""CIE₁: T. Yu, R. Wang, J. Yan, B. Li, *Learning Deep Graph Matching with Channel-Independent Embedding and
Hungarian Attention*, ICLR 2020.

PCA-GM with channel-independent convolutions (`ChannelConv`), which embed edges as well as nodes, in the place
of its graph convolutions, and Sinkhorn at temperature 0.005. Trained with the loss `hungarian_attention`
(CIE₁-H).

Chosen: edges begin as exp(−length/256), as in the authors' code; the paper's reciprocal of the length has no
value where two points coincide. Only nodes take part in the cross-graph step.
"""

from __future__ import annotations

from quadmatch.layers.affinity import BilinearAffinity
from quadmatch.layers.attributes import NodeAttributes
from quadmatch.layers.channel_conv import ChannelConv
from quadmatch.layers.cross_graph import LinearMerge
from quadmatch.layers.network import Assign, SiameseNetwork
from quadmatch.layers.refinement import stack_layers


def build_cie(
    *,
    channels: int = 1024,
    width: int = 2048,
    layers: int = 2,
    temperature: float = 0.005,
    sinkhorn_iterations: int = 20,
) -> SiameseNetwork:
    """`channels` is the number of image features of a node, `width` that after each layer."""
    made: list[ChannelConv] = []

    def make_layer(inputs: int, outputs: int, last: bool) -> ChannelConv:
        made.append(ChannelConv(inputs, outputs, made[-1] if made else None))
        return made[-1]

    stack, affinities = stack_layers(
        make_layer, BilinearAffinity, [channels, *[width] * layers], cross_graph=True, merge=True
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
