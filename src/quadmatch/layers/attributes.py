"""Node attributes that a refinement starts from: what the image says, and where the node is."""

from __future__ import annotations

from math import pi
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from quadmatch.layers.nodes import map_nodes
from quadmatch.layers.structure import normalise_rows

Frame = Literal["direction", "box"]


def encode_points(
    points: Float[Tensor, "*N 2"], frame: Frame = "box", frequencies: int = 0, extent: float = 256.0
) -> Float[Tensor, "*N D"]:
    """The unary geometric prior: coordinates as attributes, [..., 2 + 4·frequencies].

    "direction": p/‖p‖, zero at the corner (what the released code calls normalised coordinates);
    "box": p/extent − ½. Each frequency k adds the sine and cosine of 2^k·π times the box coordinates.
    """
    if frame not in ("direction", "box"):
        raise ValueError(f"frame must be 'direction' or 'box', got {frame!r}")
    box = points / extent - 0.5
    angles = [box * (pi * 2**k) for k in range(frequencies)]
    waves = [wave for angle in angles for wave in (angle.sin(), angle.cos())]
    return torch.cat([normalise_rows(points) if frame == "direction" else box, *waves], dim=-1)


class NodeAttributes(nn.Module):
    """Image features and geometric prior of each node as one vector.

    Without a `width` they are concatenated, as the paper does: [B, N, channels + prior]. With one, each is
    mapped linearly to `width` and the two are added, after LayerNorm and dropout of the image features:
    so the two coordinates are not drowned by a thousand features.
    """

    def __init__(
        self,
        channels: int,
        *,
        prior: bool = True,
        frame: Frame = "direction",
        frequencies: int = 0,
        width: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.prior, self.frame, self.frequencies = prior, frame, frequencies
        places = 2 + 4 * frequencies if prior else 0
        self.channels = channels + places if width is None else width
        self.dropout = nn.Dropout(dropout)
        self.norm = None if width is None else nn.LayerNorm(channels)
        self.project = None if width is None else nn.Linear(channels, width)
        self.place = nn.Linear(places, width) if width is not None and prior else None

    def forward(
        self,
        features: Float[Tensor, "B N C"],
        points: Float[Tensor, "B N 2"],
        mask: Bool[Tensor, "B N"] | None = None,
    ) -> Float[Tensor, "B N D"]:
        """Attributes of every node, zero on padding if a mask says where that is."""
        return map_nodes(self._describe, torch.cat([features, points.to(features.dtype)], -1), mask)

    def _describe(self, nodes: Float[Tensor, "*N C"]) -> Float[Tensor, "*N D"]:
        """Attributes of nodes whose last two channels are their points."""
        places = encode_points(nodes[..., -2:], self.frame, self.frequencies)
        features: Tensor = nodes[..., :-2]
        if self.norm is not None:
            features = self.norm(features)
        features = self.dropout(features)
        if self.project is None:
            return torch.cat([features, places], dim=-1) if self.prior else features
        features = self.project(features)
        return features if self.place is None else features + self.place(places)
