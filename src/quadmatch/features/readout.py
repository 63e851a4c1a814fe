"""Activations read out at keypoints."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import grid_sample, normalize


def sample(
    maps: Float[Tensor, "B C H W"], cells: Float[Tensor, "B K 2"], *, padding: str = "border"
) -> Float[Tensor, "B K C"]:
    """Bilinear interpolation at `cells`, (x, y) counted in cells of the map, the first cell's centre at 0."""
    height, width = maps.shape[2:]
    scale = cells.new_tensor([2 / width, 2 / height])
    grid = ((cells + 0.5) * scale - 1)[:, :, None]
    read = grid_sample(maps, grid.to(maps.dtype), mode="bilinear", padding_mode=padding, align_corners=False)
    return read[..., 0].transpose(1, 2)


def to_cells(points: Float[Tensor, "B K 2"], stride: int) -> Float[Tensor, "B K 2"]:
    """Pixels to cells: a cell's centre stands for `stride` pixels."""
    return points / stride - 0.5


def read_out(maps: Float[Tensor, "B C H W"], points: Float[Tensor, "B K 2"], stride: int) -> Float[Tensor, "B K C"]:
    """Features at keypoints: each cell normalised over its channels, then interpolated.

    Points outside the image take the nearest cell. A cell without any activation stays zero.
    """
    return sample(normalize(maps, dim=1), to_cells(points, stride))
