"""The last block of VGG16's convolutions, trained on the whole crop."""

from __future__ import annotations

from collections.abc import Iterable

from jaxtyping import Float
from torch import Tensor, nn

from quadmatch.features.vgg import Layer

CONVOLUTIONS: dict[Layer, tuple[str, ...]] = {"relu5_1": ("24",), "relu5_3": ("26", "28")}
"""What leads to each layer that can be read in the block, under torchvision's names."""


class LastBlock(nn.Module):
    """The convolutions from the end of the fourth block to the last layer that is read, each with its ReLU."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        super().__init__()
        order = list(CONVOLUTIONS)
        self.reach = order[: 1 + max(order.index(one) for one in layers)]
        self.features = nn.ModuleDict(
            {place: nn.Conv2d(512, 512, 3, padding=1) for one in self.reach for place in CONVOLUTIONS[one]}
        )

    def forward(self, maps: Float[Tensor, "B 512 H W"]) -> dict[Layer, Tensor]:
        """Activations of the layers that can be read."""
        found: dict[Layer, Tensor] = {}
        for layer in self.reach:
            for place in CONVOLUTIONS[layer]:
                maps = self.features[place](maps).relu()
            found[layer] = maps
        return found
