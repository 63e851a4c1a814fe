"""Pictures that a user gives: prepared once each, then matched in any number of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from quadmatch.datasets.boxes import choose_box
from quadmatch.datasets.picture import Picture
from quadmatch.datasets.pixels import crop, move_points, read_pixels
from quadmatch.delaunay import CONSTRUCTIONS
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.trunk import Entry, join_entries
from quadmatch.graph import Graph, GraphPair, PairBatch

IMAGES = 8
"""Pictures that go through the network together."""
ENTRIES = 2**18
"""Entries of the assignments that are computed together; bounds memory."""


class Stored(NamedTuple):
    """What an extractor keeps of some objects, joined; the arguments of its `forward`."""

    arrays: Mapping[str, Tensor]
    counts: Sequence[int]
    """Keypoints of each object."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """What matching needs of one picture."""

    entry: Entry
    """What an extractor keeps of it."""
    single: frozenset[str]
    """Parts of the entry that it has once, not once a keypoint."""
    points: Float[Tensor, "K 2"]
    """The keypoints in the frame of the crop."""
    adjacency: Float[Tensor, "K K"]

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return sum(array.nbytes for array in self.entry.values()) + self.points.nbytes + self.adjacency.nbytes


def extract_crops(
    extractor: FeatureExtractor,
    crops: Iterable[tuple[UInt8[np.ndarray, "S S 3"], Float[np.ndarray, "_ 2"]]],
    *,
    together: int = IMAGES,
    device: torch.device | str = "cpu",
) -> Iterator[tuple[Entry, Float[Tensor, "_ 2"]]]:
    """What is kept of each crop, and its keypoints; so many go through the network `together`."""
    left = iter(crops)
    while chunk := list(islice(left, together)):
        images = torch.from_numpy(np.stack([square for square, _ in chunk])).to(device)
        points = [torch.from_numpy(own) for _, own in chunk]
        yield from zip(extractor.extract(images, points), points)


def prepare(
    extractor: FeatureExtractor,
    pictures: Sequence[Picture],
    *,
    construction: str = "delaunay",
    device: torch.device | str = "cpu",
) -> list[Prepared]:
    """What matching needs of each picture, in order."""
    join = CONSTRUCTIONS[construction]
    crops = (_crop(picture, extractor.size) for picture in pictures)
    return [
        Prepared(entry, extractor.single, points, join(points))
        for entry, points in extract_crops(extractor, crops, device=device)
    ]


def _crop(picture: Picture, size: int) -> tuple[UInt8[np.ndarray, "S S 3"], Float[np.ndarray, "K 2"]]:
    """The part to look at, around the keypoints where no box says more, and the keypoints in it."""
    pixels, own = read_pixels(picture.image, picture.name), picture.keypoints
    box = choose_box(own.points, pixels.shape[1], pixels.shape[0], own.box, f"box of {picture.name}")
    return crop(pixels, box, size), move_points(own.points, box, size).astype(np.float32)


class PreparedPairs(NamedTuple):
    """Some pairs of prepared pictures as a batch, and what is stored of the pictures."""

    stored: Stored
    pairs: PairBatch


def pair_up(
    prepared: Sequence[Prepared], source: Sequence[int], target: Sequence[int], device: torch.device | str = "cpu"
) -> Iterator[PreparedPairs]:
    """Pairs of prepared pictures, given by their places, in padded batches that bound memory."""
    for chunk in _split([(len(prepared[i].points), len(prepared[j].points)) for i, j in zip(source, target)]):
        left = [prepared[source[pair]] for pair in chunk]
        right = [prepared[target[pair]] for pair in chunk]
        places: dict[int, int] = {}
        own = [places.setdefault(id(one), len(places)) for one in (*left, *right)]
        members = list({id(one): one for one in (*left, *right)}.values())
        stored = Stored(*join_entries([one.entry for one in members], members[0].single, torch.device(device)))
        objects = torch.tensor(own, device=device).view(2, -1)
        (graph, nodes), (other, others) = _pad(left, device), _pad(right, device)
        truth = torch.zeros(*graph.mask.shape, other.mask.shape[1], dtype=torch.bool, device=device)
        pairs = GraphPair(graph, other, truth)
        yield PreparedPairs(stored, PairBatch(pairs, objects[0], objects[1], nodes, others))


def _pad(prepared: Sequence[Prepared], device: torch.device | str) -> tuple[Graph, Tensor]:
    """Graphs of pictures, in the user's order of nodes, and the nodes' indices, -1 on padding."""
    counts = torch.tensor([len(one.points) for one in prepared])
    width = max(1, int(counts.max()))
    mask = torch.arange(width) < counts[:, None]
    points = torch.zeros(len(prepared), width, 2)
    adjacency = torch.zeros(len(prepared), width, width)
    for row, one in enumerate(prepared):
        count = len(one.points)
        points[row, :count], adjacency[row, :count, :count] = one.points, one.adjacency
    nodes = torch.where(mask, torch.arange(width), -1)
    return Graph(points, mask, adjacency).to(device), nodes.to(device)


def _split(sizes: Sequence[tuple[int, int]]) -> Iterator[range]:
    """Consecutive pairs whose padded assignments have at most `ENTRIES` entries."""
    start, rows, columns = 0, 0, 0
    for pair, (nodes, others) in enumerate(sizes):
        rows, columns = max(rows, nodes), max(columns, others)
        if pair > start and (pair - start + 1) * rows * columns > ENTRIES:
            yield range(start, pair)
            start, rows, columns = pair, nodes, others
    if sizes:
        yield range(start, len(sizes))
