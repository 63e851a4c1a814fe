"""Read-outs of the trained and of the untrained convolutions from one pass over an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from quadmatch.features.extractor import FeatureExtractor, LocalFeatures
from quadmatch.features.local import LocalConvolutions
from quadmatch.matching import Features


class TwinFeatures(LocalFeatures):
    """`local` and `edge` of the trained convolutions, followed by those of the same network untrained.

    Both read what level `local` keeps of an image, so the second costs no convolution of the whole image.
    """

    def __init__(self, trained: LocalFeatures) -> None:
        # Not LocalFeatures': the convolutions of the whole image are those of the trained one.
        FeatureExtractor.__init__(self, LocalConvolutions(), trained.initial, trained.precision, trained.size)
        self.trained, self.trunk = trained, trained.trunk
        self.requires_grad_(False)

    def forward(self, arrays: Mapping[str, Tensor], counts: Sequence[int]) -> Features:
        """Features of both, twice as wide."""
        trained, plain = self.trained(arrays, counts), super().forward(arrays, counts)
        return Features(
            torch.cat([trained.local, plain.local], -1),
            torch.cat([trained.edge, plain.edge], -1),
            trained.whole,
        )
