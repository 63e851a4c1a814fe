"""The frozen part of a network, run on batches of images, and the arrays that are kept of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from quadmatch.features.precision import Precision
from quadmatch.features.vgg import VGG16, Layer, normalise_images

Entry = dict[str, np.ndarray]
"""What is kept of one object: arrays with a row a keypoint, and some that it has once."""


class Trunk:
    """VGG16 with fixed weights. Not a module: neither trained, nor saved, nor counted with a model."""

    def __init__(self, state: Mapping[str, Tensor], precision: Precision, last: Layer = "relu5_1") -> None:
        with torch.device("meta"):  # Nothing is drawn at random that would be overwritten.
            network = VGG16(last)
        network.load_state_dict({key: state[key] for key in network.state_dict()}, assign=True)
        self.network = precision.freeze(network)
        self.precision = precision

    def run(self, images: UInt8[Tensor, "B S S 3"], wanted: Collection[Layer]) -> dict[Layer, Tensor]:
        """Activations of the wanted layers, on the device of the images."""
        device = images.device.type
        with torch.inference_mode(), self.precision.running(device):
            maps = self.network.to(images.device)(self.precision.arrange(normalise_images(images)), wanted)
        # Sampling a few points is fastest, and most exact, from plain float32 maps.
        return {layer: activations.float().contiguous() for layer, activations in maps.items()}


def pad_points(points: Sequence[Float[Tensor, "_ 2"]], device: torch.device) -> Float[Tensor, "B K 2"]:
    """Keypoints of several images as one tensor, padded by the origin; K ≥ 1, as sampling needs."""
    padded = pad_sequence([each.to(device, torch.float32) for each in points], batch_first=True)
    return padded if padded.shape[1] else padded.new_zeros(len(points), 1, 2)


def split_entries(rows: Mapping[str, Tensor], once: Mapping[str, Tensor], points: Sequence[Tensor]) -> list[Entry]:
    """One entry an object: its own keypoints of each tensor in `rows`, [B, K, …], and its part of each in `once`."""
    many, single = ({part: _shrink(values) for part, values in one.items()} for one in (rows, once))
    return [
        {part: values[index, : len(own)] for part, values in many.items()}
        | {part: values[index] for part, values in single.items()}
        for index, own in enumerate(points)
    ]


def list_points(points: Float[Tensor, "K 2"]) -> np.ndarray:
    """Keypoints as an entry has them."""
    return points.cpu().numpy().astype(np.float32)


def join_entries(
    entries: Sequence[Entry], single: Set[str], device: torch.device
) -> tuple[dict[str, Tensor], list[int]]:
    """The arrays of several objects one after the other, those in `single` stacked; numbers of keypoints."""
    joined: dict[str, Tensor] = {}
    counts: list[int] = []
    for part in entries[0]:
        rows = [entry[part] for entry in entries]
        if part in single:
            joined[part] = torch.from_numpy(np.stack(rows)).to(device)
        else:
            joined[part] = torch.from_numpy(np.concatenate(rows)).to(device)
            counts = [len(row) for row in rows]
    return joined, counts


def pad_rows(rows: Float[Tensor, "T C"], present: Bool[Tensor, "B K"]) -> Float[Tensor, "B K C"]:
    """Rows of all objects, one after the other, where `present`; zero elsewhere."""
    padded = rows.new_zeros(*present.shape, rows.shape[-1])
    padded[present] = rows
    return padded


def _shrink(values: Tensor) -> np.ndarray:
    """As float16, clipped to its range instead of becoming infinite."""
    limit = torch.finfo(torch.float16).max
    return values.clamp(-limit, limit).half().cpu().numpy()
