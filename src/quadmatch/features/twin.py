"""Read-outs of the trained and of the untrained convolutions from one pass over an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.levels import LocalFeatures
from quadmatch.features.local import LocalConvolutions
from quadmatch.matching import TRAINED, UNTRAINED, Features


class TwinFeatures(LocalFeatures):
    """Read-outs of the trained convolutions beside those of the same network untrained.

    Both read what level `local` keeps of an image, so the second costs no convolution of the whole image.
    """

    def __init__(self, trained: LocalFeatures) -> None:
        # Not LocalFeatures': the convolutions of the whole image are those of the trained one.
        FeatureExtractor.__init__(self, LocalConvolutions(), trained.initial, trained.precision, trained.size)
        self.trained, self.trunk = trained, trained.trunk
        self.requires_grad_(False)

    def forward(self, arrays: Mapping[str, Tensor], counts: Sequence[int]) -> Features:
        """Features of both."""
        trained: Features = self.trained(arrays, counts)
        plain = super().forward(arrays, counts)
        maps = {TRAINED + name: rows for name, rows in trained.maps.items()}
        return replace(trained, maps=maps | {UNTRAINED + name: rows for name, rows in plain.maps.items()})
