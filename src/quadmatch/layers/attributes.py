"""Node attributes that a refinement starts from: what the image says, and where the node is."""

from __future__ import annotations

from math import pi
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from quadmatch.layers.linear import Linear
from quadmatch.layers.nodes import Packing
from quadmatch.layers.structure import normalise_rows

Frame = Literal["direction", "box", "graph", "both"]
FRAMES: tuple[Frame, ...] = get_args(Frame)


def centre_points(points: Float[Tensor, "*B N 2"], mask: Bool[Tensor, "*B N"] | None = None) -> Float[Tensor, "*B N 2"]:
    """Points in the frame of their own graph: from its centre, over four times their root mean square distance to it.

    So most lie within ±½, wherever in the picture the object is and however large; a graph of one place gives
    zeros, and so does padding.
    """
    real = points.new_ones(points.shape[:-1]) if mask is None else mask.to(points.dtype)
    number = real.sum(-1).clamp(min=1)[..., None, None]
    offsets = (points - (points * real[..., None]).sum(-2, keepdim=True) / number) * real[..., None]
    spread = offsets.square().sum((-2, -1), keepdim=True) / number
    return offsets / (4 * spread.clamp(min=1e-6).sqrt())


def encode_points(
    points: Float[Tensor, "*B N 2"],
    frame: Frame = "box",
    frequencies: int = 0,
    mask: Bool[Tensor, "*B N"] | None = None,
    extent: float = 256.0,
) -> Float[Tensor, "*B N D"]:
    """The unary geometric prior: coordinates as attributes, [..., 2 + 4·frequencies], twice that for "both".

    "direction": p/‖p‖, zero at the corner (what the released code calls normalised coordinates);
    "box": p/extent − ½; "graph": `centre_points`; "both": those of the box, then those of the graph.
    Each frequency k adds the sine and cosine of 2^k·π times the coordinates (of the box for "direction").
    """
    if frame not in FRAMES:
        raise ValueError(f"frame must be one of {', '.join(map(repr, FRAMES))}, got {frame!r}")
    if frame == "both":
        kinds: tuple[Frame, Frame] = ("box", "graph")
        return torch.cat([encode_points(points, kind, frequencies, mask, extent) for kind in kinds], -1)
    places = centre_points(points, mask) if frame == "graph" else points / extent - 0.5
    powers = 2.0 ** torch.arange(frequencies, device=places.device, dtype=places.dtype)
    angles = places[..., None, :] * (pi * powers)[:, None]
    waves = torch.stack([angles.sin(), angles.cos()], -2).flatten(-3)
    return torch.cat([normalise_rows(points) if frame == "direction" else places, waves], dim=-1)


class NodeAttributes(nn.Module):
    """Image features and geometric prior of each node as one vector.

    Without a `width` they are concatenated, as the paper does: [B, N, channels + prior]. With one, each is
    mapped linearly to `width` and the two are added, after LayerNorm and dropout of the image features:
    so the two coordinates are not drowned by a thousand features. In training, a share `erase` of the nodes
    has no image features then, so that places have to tell what they are.
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
        erase: float = 0.0,
    ) -> None:
        super().__init__()
        self.frame, self.frequencies, self.erase = frame, frequencies, erase
        self.places = (2 + 4 * frequencies) * (2 if frame == "both" else 1) if prior else 0
        self.channels = channels + self.places if width is None else width
        self.dropout = nn.Dropout(dropout)
        self.norm = None if width is None else nn.LayerNorm(channels)
        self.project = None if width is None else Linear(channels, width)
        self.place = nn.Linear(self.places, width) if width is not None and prior else None

    def forward(
        self, features: Float[Tensor, "B N C"], points: Float[Tensor, "B N 2"], mask: Bool[Tensor, "B N"] | None = None
    ) -> Float[Tensor, "B N D"]:
        """Attributes of every node, zero on padding if a mask says where that is."""
        packing = Packing(points.new_ones(points.shape[:-1], dtype=torch.bool) if mask is None else mask)
        rows = self.look(packing.pack(features))
        if self.training and self.erase and self.project is not None:
            rows = rows * (torch.rand_like(rows[..., :1]) >= self.erase)
        if self.places:
            places = packing.pack(encode_points(points.to(features.dtype), self.frame, self.frequencies, mask))
            rows = torch.cat([rows, places], -1) if self.place is None else rows + self.place(places)
        return packing.spread(rows)

    def look(self, features: Float[Tensor, "*N C"]) -> Float[Tensor, "*N D"]:
        """What image features alone say of nodes."""
        features = self.dropout(features if self.norm is None else self.norm(features))
        return features if self.project is None else self.project(features)
