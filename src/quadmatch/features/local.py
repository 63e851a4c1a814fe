"""The last convolutions before each read-out, evaluated and trained only at the keypoints.

What lies before them is frozen, so it is sampled once around each keypoint and kept:

- `pool3`: a 5×5 grid of cells (8 pixels apart), 25 × 256 numbers, which conv4_1 turns into 3×3 and
  conv4_2 into one vector, the node feature;
- `pool4`: a 3×3 grid of cells (16 pixels apart), 9 × 512 numbers, which conv5_1 turns into the edge feature.

The samples are interpolated before the convolutions, the dense read-out interpolates after them: the two
differ in the order of ReLU and interpolation only. A keypoint costs 15 M multiply-adds, a dense conv4–conv5
6,600 M an image.
"""

from __future__ import annotations

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from quadmatch.features.readout import sample, to_cells

NEAR, WIDE = 5, 3
"""Cells on a side of the grids that are sampled from pool3 and pool4."""


def sample_grid(
    maps: Float[Tensor, "B C H W"], points: Float[Tensor, "B K 2"], stride: int, side: int
) -> Float[Tensor, "B K C {side} {side}"]:
    """A `side`×`side` grid of cells around each keypoint; zero outside the map, as a convolution pads."""
    height, width = maps.shape[2:]
    limit = points.new_tensor([width - 1, height - 1])
    centre = to_cells(points, stride).clamp(min=0).minimum(limit)
    steps = torch.arange(side, device=points.device, dtype=points.dtype) - side // 2
    rows, columns = torch.meshgrid(steps, steps, indexing="ij")
    offsets = torch.stack([columns, rows], dim=-1).reshape(-1, 2)
    cells = (centre[:, :, None] + offsets).flatten(1, 2)
    read = sample(maps, cells, padding="zeros")
    batch, keypoints = points.shape[:2]
    return read.view(batch, keypoints, side, side, -1).movedim(-1, 2)


class LocalConvolutions(nn.Module):
    """conv4_1, conv4_2 and conv5_1 of VGG16 at the keypoints alone; torchvision's key names."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.ModuleDict(
            {"17": nn.Conv2d(256, 512, 3), "19": nn.Conv2d(512, 512, 3), "24": nn.Conv2d(512, 512, 3)}
        )

    def forward(
        self, near: Float[Tensor, "K 256 5 5"], wide: Float[Tensor, "K 512 3 3"]
    ) -> tuple[Float[Tensor, "K 512"], Float[Tensor, "K 512"]]:
        """Node and edge features, each of unit length."""
        # As matrix products: on 5×5 maps they take two thirds of the time of the library's convolution.
        patches = near.unfold(2, 3, 1).unfold(3, 3, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, 9 * 256)
        hidden = self._convolve("17", patches).view(-1, 9, 512).transpose(1, 2).flatten(1)
        local, edge = self._convolve("19", hidden), self._convolve("24", wide.flatten(1))
        return normalize(local, dim=-1), normalize(edge, dim=-1)

    def _convolve(self, key: str, patches: Float[Tensor, "P I"]) -> Float[Tensor, "P 512"]:
        convolution = cast(nn.Conv2d, self.features[key])
        return linear(patches, convolution.weight.flatten(1), convolution.bias).relu()
