"""The levels of an extractor, by what of the network is trained.

- `frozen` keeps the read-outs; nothing is trained;
- `local` keeps activations around each keypoint, and trains the last convolutions there alone;
- `late` keeps the map before the last block of convolutions, and trains that block;
- `full` keeps the pixels, and trains the whole network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import Tensor, nn

from quadmatch.features.extractor import FeatureExtractor, Level
from quadmatch.features.late import CONVOLUTIONS, LastBlock
from quadmatch.features.local import NEAR, WIDE, LocalConvolutions, sample_grid
from quadmatch.features.precision import Precision, choose_precision
from quadmatch.features.readout import read_out
from quadmatch.features.trunk import Entry, Trunk, list_points, pad_points, pad_rows, split_entries
from quadmatch.features.vgg import STRIDES, VGG16, Layer, normalise_images
from quadmatch.features.weight_files import fold_batch_norm, has_batch_norm
from quadmatch.features.weights import resolve_vgg16
from quadmatch.matching import EDGE, LOCAL

READ_OUTS: tuple[Layer, ...] = ("relu4_2", "relu5_1")
WHOLE: Layer = "relu5_1"
"""The layer whose largest activations stand for the whole object."""
STORED = {LOCAL: "local", EDGE: "edge"}
"""Names under which stores keep these layers; the others are kept under their own."""


class FrozenFeatures(FeatureExtractor):
    """Read-outs of the ImageNet network; nothing is trained."""

    level = "frozen"

    def __init__(
        self, state: dict[str, Tensor], precision: Precision, size: int = 256, layers: Sequence[Layer] = READ_OUTS
    ) -> None:
        super().__init__(nn.Module(), fold_batch_norm(state), precision, size)
        self.layers = tuple(layers)
        self.trunk = Trunk(self.initial, precision, max((*layers, WHOLE), key=list(STRIDES).index))

    def keep(self, images: Tensor, points: Sequence[Tensor]) -> list[Entry]:
        """Normalised read-outs at the keypoints, and the image's largest activations."""
        maps, padded = self.trunk.run(images, {*self.layers, WHOLE}), pad_points(points, images.device)
        rows = {STORED.get(one, one): read_out(maps[one], padded, STRIDES[one]) for one in self.layers}
        return split_entries(rows, {"whole": maps[WHOLE].amax((2, 3))}, points)

    def read(self, arrays: Mapping[str, Tensor], present: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """What was kept, as it is."""
        return {one: arrays[STORED.get(one, one)] for one in self.layers}, arrays["whole"]


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
        return split_entries({"near": near, "wide": wide}, {"whole": maps[WHOLE].amax((2, 3))}, points)

    def read(self, arrays: Mapping[str, Tensor], present: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The convolutions at the keypoints."""
        with self.precision.casting(arrays["near"].device.type):
            rows = self.network(arrays["near"].float(), arrays["wide"].float())
        return dict(zip(READ_OUTS, rows)), arrays["whole"]


class LateFeatures(FeatureExtractor):
    """The last block of convolutions, trained on the whole crop; read-outs of the layers before it are kept."""

    level = "late"
    single = frozenset({"map"})

    def __init__(
        self, state: dict[str, Tensor], precision: Precision, size: int = 256, layers: Sequence[Layer] = READ_OUTS
    ) -> None:
        network = precision.prepare(LastBlock((WHOLE, *(one for one in layers if one in CONVOLUTIONS))))
        super().__init__(network, fold_batch_norm(state), precision, size)
        self.reads, self.early = tuple(layers), tuple(one for one in layers if one not in CONVOLUTIONS)
        self.layers = (*self.early, "pool4")
        self.trunk = Trunk(self.initial, precision, "pool4")

    def keep(self, images: Tensor, points: Sequence[Tensor]) -> list[Entry]:
        """The early read-outs at the keypoints, where these are, and the map that the last block begins with."""
        maps, padded = self.trunk.run(images, self.layers), pad_points(points, images.device)
        rows = {STORED.get(one, one): read_out(maps[one], padded, STRIDES[one]) for one in self.early}
        entries = split_entries(rows, {"map": maps["pool4"]}, points)
        return [entry | {"points": list_points(own)} for entry, own in zip(entries, points)]

    def read(self, arrays: Mapping[str, Tensor], present: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The last block on the maps, read out at the keypoints, beside what was kept."""
        maps = self.precision.arrange(arrays["map"].float())
        with self.precision.casting(maps.device.type):
            activations = self.network(maps)
        present = present.to(maps.device)
        points = pad_rows(arrays["points"], present)
        rows: dict[str, Tensor] = {
            one: arrays[STORED.get(one, one)]
            if one in self.early
            else read_out(activations[one].float(), points, STRIDES[one])[present]
            for one in self.reads
        }
        return rows, activations[WHOLE].float().amax((2, 3))


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
        return [{"pixels": image, "points": list_points(own)} for image, own in zip(pixels, points)]

    def read(self, arrays: Mapping[str, Tensor], present: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The network on the images, read out at the keypoints."""
        images = self.precision.arrange(normalise_images(arrays["pixels"]))
        with self.precision.casting(images.device.type):
            maps = self.network(images, READ_OUTS)
        present = present.to(images.device)
        points = pad_rows(arrays["points"], present)
        rows: dict[str, Tensor] = {}
        for layer in READ_OUTS:
            rows[layer] = read_out(maps[layer].float(), points, STRIDES[layer])[present]
        return rows, maps[WHOLE].float().amax((2, 3))


EXTRACTORS: dict[Level, type[FrozenFeatures | LocalFeatures | LateFeatures | FullFeatures]] = {
    "frozen": FrozenFeatures,
    "local": LocalFeatures,
    "late": LateFeatures,
    "full": FullFeatures,
}


def build_extractor(
    level: str = "frozen",
    *,
    weights: str | Path | dict[str, Tensor] | None = None,
    precision: str | Precision | None = None,
    size: int = 256,
    layers: Sequence[Layer] | None = None,
) -> FeatureExtractor:
    """The extractor of a level, with VGG16's ImageNet weights unless others are given.

    `layers` can be chosen at the levels `frozen` and `late`.
    """
    if level not in EXTRACTORS:
        raise ValueError(f"level {level!r}: needs one of {', '.join(EXTRACTORS)}")
    state = weights if isinstance(weights, dict) else resolve_vgg16(weights)
    given = state, choose_precision(precision), size
    if layers is None:
        return EXTRACTORS[level](*given)
    if level not in ("frozen", "late"):
        raise ValueError(f"layers can be chosen at levels 'frozen' and 'late' only; level {level!r} reads {READ_OUTS}")
    return (FrozenFeatures if level == "frozen" else LateFeatures)(*given, layers)
