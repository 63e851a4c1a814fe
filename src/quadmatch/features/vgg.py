"""The VGG16 trunk, with torchvision's key names, so that public checkpoints load."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, cast

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)

Layer = Literal["relu3_3", "pool3", "relu4_2", "pool4", "relu5_1", "relu5_3"]
STRIDES: dict[Layer, int] = {"relu3_3": 4, "pool3": 8, "relu4_2": 8, "pool4": 16, "relu5_1": 16, "relu5_3": 16}
"""Pixels between two cells of each layer that can be read, in the order in which they are computed."""


class VGG16(nn.Module):
    """Convolutions of VGG16 (Simonyan and Zisserman, 2014) up to `last`; `features.*` as in torchvision."""

    def __init__(self, last: Layer = "relu5_1", batch_norm: bool = False) -> None:
        super().__init__()
        names, modules = _layers(batch_norm)
        stop = names.index(last) + 1
        self.names = cast(list[Layer], names[:stop])
        self.features = nn.ModuleList(modules[:stop])

    def forward(self, images: Float[Tensor, "B 3 H W"], wanted: Collection[Layer]) -> dict[Layer, Tensor]:
        """Normalised images in, the `wanted` activations out, [B, C, H / stride, W / stride]."""
        found: dict[Layer, Tensor] = {}
        hidden: Tensor = images
        for name, module in zip(self.names, self.features):
            hidden = module(hidden)
            if name in wanted:
                found[name] = hidden
        missing = set(wanted) - set(found)
        if missing:
            raise ValueError(f"wanted layers {sorted(missing)} are behind the trunk's last, {self.names[-1]}")
        return found


def _layers(batch_norm: bool) -> tuple[list[str], list[nn.Module]]:
    names: list[str] = []
    modules: list[nn.Module] = []
    previous = 3
    for block, widths in enumerate(BLOCKS, start=1):
        for number, width in enumerate(widths, start=1):
            names.append(f"conv{block}_{number}")
            modules.append(nn.Conv2d(previous, width, kernel_size=3, padding=1))
            if batch_norm:
                names.append(f"norm{block}_{number}")
                modules.append(nn.BatchNorm2d(width))
            names.append(f"relu{block}_{number}")
            modules.append(nn.ReLU(inplace=True))
            previous = width
        names.append(f"pool{block}")
        modules.append(nn.MaxPool2d(2))
    return names, modules


def normalise_images(images: UInt8[Tensor, "B H W 3"]) -> Float[Tensor, "B 3 H W"]:
    """RGB bytes to the numbers that ImageNet's networks expect."""
    mean, std = torch.tensor(MEAN, device=images.device), torch.tensor(STD, device=images.device)
    return ((images.float() / 255 - mean) / std).permute(0, 3, 1, 2)
