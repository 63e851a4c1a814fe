"""Image + keypoints → Features, in two parts.

`extract` is what can be done once an image and kept (`features.cache`); `forward` turns what was kept into
Features, with gradients for what the level of the extractor trains (`features.levels`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import UInt8
from torch import Tensor, nn
from torch.nn.functional import normalize

from quadmatch.features.cache import hash_key
from quadmatch.features.precision import Precision
from quadmatch.features.trunk import Entry, join_entries, pad_rows
from quadmatch.features.vgg import Layer
from quadmatch.features.weight_files import hash_state
from quadmatch.matching import Features

Level = Literal["frozen", "local", "late", "full"]


class FeatureExtractor(nn.Module):
    """What all levels share: kept arrays become padded Features, and trained weights are saved."""

    level: ClassVar[Level]
    layers: tuple[Layer, ...] = ()
    """Activations of the frozen part that are kept of an image."""
    single: ClassVar[frozenset[str]] = frozenset({"whole"})
    """Parts that an object has once; of the others it has one row a keypoint."""

    def __init__(self, network: nn.Module, initial: dict[str, Tensor], precision: Precision, size: int) -> None:
        super().__init__()
        if size < 16 or size % 16:
            raise ValueError(f"size {size}: the side of an image must be a positive multiple of 16")
        self.network, self.initial, self.precision, self.size = network, initial, precision, size
        self.load_trained({})

    def extract(self, images: UInt8[Tensor, "B S S 3"], points: Sequence[Tensor]) -> list[Entry]:
        """What is kept of each image and its keypoints [K, 2], in pixels of the S × S image."""
        if images.shape[1] != self.size:
            raise ValueError(f"images are {images.shape[1]} pixels wide; this extractor needs {self.size}")
        if len(images) != len(points):
            raise ValueError(f"images are {len(images)}, but points has keypoints for {len(points)}")
        return self.keep(images, points)

    def keep(self, images: Tensor, points: Sequence[Tensor]) -> list[Entry]:
        """As `extract`, for images of the right size."""
        raise TypeError("use one of the levels, from build_extractor")

    def read(self, arrays: Mapping[str, Tensor], present: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Read-outs by layer, a row for each keypoint `present` [B, K]; and `whole`, a row an object."""
        raise TypeError("use one of the levels, from build_extractor")

    def forward(self, arrays: Mapping[str, Tensor], counts: Sequence[int]) -> Features:
        """Features of objects with `counts` keypoints each, from what was kept of them, joined."""
        present = torch.arange(max(counts)) < torch.tensor(counts)[:, None]
        rows, whole = self.read(arrays, present)
        present = present.to(whole.device)
        maps = {layer: pad_rows(values.float(), present) for layer, values in rows.items()}
        return Features(maps, normalize(whole.float(), dim=-1))

    def compute(self, images: UInt8[Tensor, "B S S 3"], points: Sequence[Tensor]) -> Features:
        """Features straight from images: the same two parts, one after the other."""
        return self.forward(*join_entries(self.extract(images, points), self.single, images.device))

    @property
    def key(self) -> str:
        """Names all that kept arrays depend on besides image and keypoints, for a FeatureStore."""
        kept: dict[str, object] = {"level": self.level, "size": self.size, "version": 1}
        if self.layers:
            kept |= {"layers": self.layers, "number": self.precision.number, "weights": hash_state(self.initial)}
        return hash_key(kept)

    def trained_state(self) -> dict[str, Tensor]:
        """What differs from the initial weights, under torchvision's names: all that a saved model needs."""
        own = {key: value.detach().cpu() for key, value in self.network.state_dict().items()}
        return {key: value for key, value in own.items() if not torch.equal(value, self.initial[key])}

    def load_trained(self, state: Mapping[str, Tensor]) -> None:
        """The initial weights, overlaid by `state`; entries that do not fit are named."""
        own = self.network.state_dict()
        for key, value in state.items():
            if key not in own:
                raise ValueError(f"the extractor of level {self.level!r} has no weights {key!r}")
            if value.shape != own[key].shape:
                found, needed = tuple(value.shape), tuple(own[key].shape)
                raise ValueError(f"weights {key!r} have the shape {found}; the extractor needs {needed}")
        self.network.load_state_dict({key: state.get(key, self.initial[key]) for key in own})
