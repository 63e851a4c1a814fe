"""Read-outs of the trained and of the untrained convolutions from one pass over an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from quadmatch.features.extractor import FeatureExtractor, LocalFeatures
from quadmatch.features.local import LocalConvolutions
from quadmatch.features.trunk import Entry, Trunk
from quadmatch.matching import Features


class TwinFeatures(FeatureExtractor):
    """`local` and `edge` of the trained convolutions, followed by those of the same network untrained.

    Both read what level `local` keeps of an image, so the second costs no convolution of the whole image.
    """

    level = LocalFeatures.level
    layers = LocalFeatures.layers

    def __init__(self, trained: LocalFeatures) -> None:
        nn.Module.__init__(self)
        self.trained, self.initial = trained, trained.initial
        self.precision, self.size = trained.precision, trained.size
        self.network = LocalConvolutions()
        self.load_trained({})
        self.requires_grad_(False)

    @property
    def trunk(self) -> Trunk:
        """The convolutions of the whole image, which both share."""
        return self.trained.trunk

    def keep(self, images: Tensor, points: Sequence[Tensor]) -> list[Entry]:
        """What level `local` keeps."""
        return self.trained.keep(images, points)

    def forward(self, arrays: Mapping[str, Tensor], counts: Sequence[int]) -> Features:
        """Features of both, twice as wide."""
        trained, plain = self.trained(arrays, counts), super().forward(arrays, counts)
        return Features(
            torch.cat([trained.local, plain.local], -1),
            torch.cat([trained.edge, plain.edge], -1),
            trained.whole,
        )

    def read(self, arrays: Mapping[str, Tensor], present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Those of the untrained convolutions."""
        with self.precision.casting(arrays["near"].device.type):
            local, edge = self.network(arrays["near"].float(), arrays["wide"].float())
        return local, edge, arrays["whole"]
