"""Attention within and between graphs, on SplineConv's features: the strongest head here.

The parts are those that the strongest systems of the field share: a geometric convolution first (BB-GM),
attention with the geometry of two nodes as a bias and attention to the other graph (LightGlue, GLAM, NMT),
what every layer says trained (NMT), a learned scale of cosines (COMMON). The quadratic constraint behind it
compares edges weighted by the last layer's features.
"""

from __future__ import annotations

from quadmatch.layers.affinity import ProjectedAffinity
from quadmatch.layers.attention import AttentionLayer
from quadmatch.layers.attributes import Frame, NodeAttributes
from quadmatch.layers.network import Assign, Matchability, SiameseNetwork
from quadmatch.layers.refinement import RefineLayer
from quadmatch.layers.structure import Kernel


def build_attention(
    *,
    channels: int = 1792,
    width: int = 256,
    convolutions: int = 2,
    layers: int = 4,
    heads: int = 8,
    frame: Frame = "both",
    frequencies: int = 4,
    reach: float = 128.0,
    kernel: Kernel | None = "exp_cosine",
    feature_dropout: float = 0.0,
    erase: float = 0.0,
    dropout: float = 0.0,
    matchability: bool = True,
) -> SiameseNetwork:
    """Image features and places, SplineConv layers, attention layers, cosines after a linear map.

    `feature_dropout` is that of image features, `erase` the share of nodes that are trained without theirs;
    `matchability` lets every node say whether it has a partner at all.
    """
    attributes = NodeAttributes(
        channels, frame=frame, frequencies=frequencies, width=width, dropout=feature_dropout, erase=erase
    )
    stack = [
        *(
            RefineLayer(width, width, refine="spline", reach=reach, residual=True, dropout=dropout)
            for _ in range(convolutions)
        ),
        *(AttentionLayer(width, heads=heads, dropout=dropout) for _ in range(layers)),
    ]
    return SiameseNetwork(
        attributes,
        stack,
        [ProjectedAffinity(width) for _ in stack],
        Assign(1.0),
        exchange=False,
        kernel=kernel,
        plain_layers=len(stack),
        matchability=Matchability(width) if matchability else None,
        alone=convolutions or None,
    )
