"""Image + keypoints → Features, at three levels of what is trained.

Each extractor splits the work in two. `extract` is what can be done once an image and kept
(`features.cache`); `forward` turns what was kept into Features, with gradients for what the level trains:

- `frozen` keeps the read-outs; nothing is trained;
- `local` keeps activations around each keypoint, and trains the last convolutions there alone;
- `full` keeps the pixels, and trains the whole network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor, nn
from torch.nn.functional import normalize

from quadmatch.features.cache import hash_key
from quadmatch.features.local import NEAR, WIDE, LocalConvolutions, sample_grid
from quadmatch.features.precision import Precision, choose_precision
from quadmatch.features.readout import read_out
from quadmatch.features.trunk import Entry, Trunk, join_entries, pad_points, pad_rows, split_entries
from quadmatch.features.vgg import STRIDES, VGG16, Layer, normalise_images
from quadmatch.features.weight_files import fold_batch_norm, has_batch_norm, hash_state
from quadmatch.features.weights import resolve_vgg16
from quadmatch.matching import Features

Level = Literal["frozen", "local", "full"]


class FeatureExtractor(nn.Module):
    """What the levels share: how kept arrays become padded Features, and what of the weights is saved."""

    level: ClassVar[Level]
    layers: ClassVar[tuple[Layer, ...]] = ()
    single: ClassVar[frozenset[str]] = frozenset({"whole"})
    """Parts that an object has once; of the others it has one row a keypoint."""

    def __init__(
        self, network: nn.Module, initial: dict[str, Tensor], precision: Precision, size: int
    ) -> None:
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
        raise TypeError("use one of EXTRACTORS, or build_extractor")

    def read(self, arrays: Mapping[str, Tensor], present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of `local` and `edge`, one a keypoint `present` [B, K], and of `whole`, one an object."""
        raise TypeError("use one of EXTRACTORS, or build_extractor")

    def forward(self, arrays: Mapping[str, Tensor], counts: Sequence[int]) -> Features:
        """Features of objects with `counts` keypoints each, from what was kept of them, joined."""
        present = torch.arange(max(counts)) < torch.tensor(counts)[:, None]
        local, edge, whole = self.read(arrays, present)
        present = present.to(local.device)
        return Features(
            pad_rows(local.float(), present),
            pad_rows(edge.float(), present),
            normalize(whole.float(), dim=-1),
        )

    def compute(self, images: UInt8[Tensor, "B S S 3"], points: Sequence[Tensor]) -> Features:
        """Features straight from images: the same two parts, one after the other."""
        return self.forward(*join_entries(self.extract(images, points), self.single, images.device))

    @property
    def key(self) -> str:
        """Names all that kept arrays depend on besides image and keypoints, for a FeatureStore."""
        kept: dict[str, object] = {"level": self.level, "size": self.size, "version": 1}
        if self.layers:
            kept |= {
                "layers": self.layers,
                "number": self.precision.number,
                "weights": hash_state(self.initial),
            }
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


class FrozenFeatures(FeatureExtractor):
    """Read-outs of the ImageNet network; nothing is trained."""

    level = "frozen"
    layers = ("relu4_2", "relu5_1")

    def __init__(self, state: dict[str, Tensor], precision: Precision, size: int = 256) -> None:
        super().__init__(nn.Module(), fold_batch_norm(state), precision, size)
        self.trunk = Trunk(self.initial, precision)

    def keep(self, images: Tensor, points: Sequence[Tensor]) -> list[Entry]:
        """Normalised read-outs at the keypoints, and the image's largest activations."""
        maps, padded = self.trunk.run(images, self.layers), pad_points(points, images.device)
        local = read_out(maps["relu4_2"], padded, STRIDES["relu4_2"])
        edge = read_out(maps["relu5_1"], padded, STRIDES["relu5_1"])
        return split_entries({"local": local, "edge": edge}, maps["relu5_1"].amax((2, 3)), points)

    def read(self, arrays: Mapping[str, Tensor], present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What was kept, as it is."""
        return arrays["local"], arrays["edge"], arrays["whole"]


class LocalFeatures(FeatureExtractor):
    """The last convolutions before each read-out, evaluated and trained at the keypoints alone."""

    level = "local"
    layers = ("pool3", "pool4", "relu5_1")

    def __init__(self, state: dict[str, Tensor], precision: Precision, size: int = 256) -> None:
        super().__init__(LocalConvolutions(), fold_batch_norm(state), precision, size)
        self.trunk = Trunk(self.initial, precision)

    def keep(self, images: Tensor, points: Sequence[Tensor]) -> list[Entry]:
        """Activations around each keypoint, and the image's largest."""
        maps, padded = self.trunk.run(images, self.layers), pad_points(points, images.device)
        near = sample_grid(maps["pool3"], padded, STRIDES["pool3"], NEAR)
        wide = sample_grid(maps["pool4"], padded, STRIDES["pool4"], WIDE)
        return split_entries({"near": near, "wide": wide}, maps["relu5_1"].amax((2, 3)), points)

    def read(self, arrays: Mapping[str, Tensor], present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The convolutions at the keypoints."""
        with self.precision.casting(arrays["near"].device.type):
            local, edge = self.network(arrays["near"].float(), arrays["wide"].float())
        return local, edge, arrays["whole"]


class FullFeatures(FeatureExtractor):
    """The whole network, trained; with batch normalisation if its weights have it."""

    level = "full"
    single = frozenset({"pixels"})

    def __init__(self, state: dict[str, Tensor], precision: Precision, size: int = 256) -> None:
        network = precision.prepare(VGG16("relu5_1", batch_norm=has_batch_norm(state)))
        super().__init__(network, state, precision, size)

    def keep(self, images: Tensor, points: Sequence[Tensor]) -> list[Entry]:
        """The pixels and keypoints themselves."""
        pixels = images.cpu().numpy()
        return [
            {"pixels": image, "points": own.cpu().numpy().astype(np.float32)}
            for image, own in zip(pixels, points)
        ]

    def read(self, arrays: Mapping[str, Tensor], present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The network on the images, read out at the keypoints."""
        images = self.precision.arrange(normalise_images(arrays["pixels"]))
        with self.precision.casting(images.device.type):
            maps = self.network(images, ("relu4_2", "relu5_1"))
        present = present.to(images.device)
        points = pad_rows(arrays["points"], present)
        local = read_out(maps["relu4_2"].float(), points, STRIDES["relu4_2"])[present]
        edge = read_out(maps["relu5_1"].float(), points, STRIDES["relu5_1"])[present]
        return local, edge, maps["relu5_1"].float().amax((2, 3))


EXTRACTORS: dict[Level, type[FrozenFeatures | LocalFeatures | FullFeatures]] = {
    "frozen": FrozenFeatures,
    "local": LocalFeatures,
    "full": FullFeatures,
}


def build_extractor(
    level: str = "frozen",
    *,
    weights: str | Path | dict[str, Tensor] | None = None,
    precision: str | Precision | None = None,
    size: int = 256,
) -> FeatureExtractor:
    """The extractor of a level, with VGG16's ImageNet weights unless others are given."""
    if level not in EXTRACTORS:
        raise ValueError(f"level {level!r}: needs one of {', '.join(EXTRACTORS)}")
    state = weights if isinstance(weights, dict) else resolve_vgg16(weights)
    return EXTRACTORS[level](state, choose_precision(precision), size)
