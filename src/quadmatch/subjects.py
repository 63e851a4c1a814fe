"""Objects in a user's own pictures: prepared once each, then matched in any number of pairs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from quadmatch.datasets.gathering import PairBatch
from quadmatch.delaunay import CONSTRUCTIONS
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.trunk import Entry, join_entries
from quadmatch.graph import Graph, GraphPair
from quadmatch.pictures import crop, find_box, read_pixels, read_points

IMAGES = 8
"""Pictures that go through the network together."""
ENTRIES = 2**18
"""Entries of the assignments that are computed together; bounds memory."""


class Stored(NamedTuple):
    """What an extractor keeps of some objects, joined; the arguments of its `forward`."""

    arrays: Mapping[str, Tensor]
    counts: Sequence[int]
    """Keypoints of each object."""


class Request(NamedTuple):
    """One object of a user."""

    image: Any
    points: Any
    box: Any = None
    name: str = "image"
    """What errors call it."""


@dataclass(frozen=True, eq=False)
class Subject:
    """What is kept of one object in one picture."""

    entry: Entry
    single: frozenset[str]
    """Parts of the entry that it has once, not once a keypoint."""
    points: Float[Tensor, "K 2"]
    """In the frame of the crop."""
    adjacency: Float[Tensor, "K K"]


def pair_requests(
    image_a: Any, points_a: Any, image_b: Any, points_b: Any, box_a: Any = None, box_b: Any = None
) -> tuple[list[Request], list[int], list[int]]:
    """The different objects in what was given, singly or in lists, and the pairs as places among them."""
    several = isinstance(image_a, (list, tuple))
    if several != isinstance(image_b, (list, tuple)):
        raise TypeError("image_a and image_b must both be one picture, or both lists of pictures")
    unique: dict[object, int] = {}
    requests: list[Request] = []
    sides: list[list[int]] = []
    for side, images, points, boxes in (("a", image_a, points_a, box_a), ("b", image_b, points_b, box_b)):
        if not several:
            images, points, boxes = [images], [points], [boxes]
        boxes = [None] * len(images) if boxes is None else boxes
        if not len(images) == len(points) == len(boxes):
            found = f"{len(images)} pictures, {len(points)} lists of points and {len(boxes)} boxes"
            raise ValueError(f"side {side} has {found}; it needs as many of each")
        sides.append([])
        for number, one in enumerate(zip(images, points, boxes)):
            request = Request(*one, name=f"image_{side}[{number}]" if several else f"image_{side}")
            place = unique.setdefault(_identify(request), len(requests))
            if place == len(requests):
                requests.append(request)
            sides[-1].append(place)
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"image_a has {len(sides[0])} pictures and image_b {len(sides[1])}; pairs need as many"
        )
    return requests, sides[0], sides[1]


def _identify(request: Request) -> object:
    """Equal for requests that surely give the same subject: the same path or the same picture in memory."""
    file = isinstance(request.image, (str, os.PathLike))
    image: object = os.fspath(request.image) if file else id(request.image)
    points = read_points(request.points, f"points of {request.name}")
    box = None if request.box is None else tuple(request.box)
    return image, points.shape, points.tobytes(), box


def prepare(
    extractor: FeatureExtractor,
    requests: Sequence[Request],
    *,
    construction: str = "delaunay",
    device: torch.device | str = "cpu",
) -> list[Subject]:
    """A subject for each request, in order."""
    join = CONSTRUCTIONS[construction]
    subjects: list[Subject] = []
    for start in range(0, len(requests), IMAGES):
        crops, frames = [], []
        for image, points, box, name in requests[start : start + IMAGES]:
            pixels = read_pixels(image, name)
            own = read_points(points, f"points of {name}")
            chosen = find_box(own, pixels.shape[1], pixels.shape[0], box, f"box of {name}")
            square, frame = crop(pixels, own, chosen, extractor.size)
            crops.append(square)
            frames.append(torch.from_numpy(frame))
        entries = extractor.extract(torch.from_numpy(np.stack(crops)).to(device), frames)
        subjects += [
            Subject(entry, extractor.single, frame, join(frame)) for entry, frame in zip(entries, frames)
        ]
    return subjects


class SubjectPairs(NamedTuple):
    """Some pairs of subjects as a batch, and what is stored of their subjects."""

    stored: Stored
    pairs: PairBatch


def pair_up(
    subjects: Sequence[Subject],
    source: Sequence[int],
    target: Sequence[int],
    device: torch.device | str = "cpu",
) -> Iterator[SubjectPairs]:
    """Pairs of subjects, given by their places, in padded batches that bound memory."""
    for chunk in _split([(len(subjects[i].points), len(subjects[j].points)) for i, j in zip(source, target)]):
        left = [subjects[source[pair]] for pair in chunk]
        right = [subjects[target[pair]] for pair in chunk]
        places: dict[int, int] = {}
        own = [places.setdefault(id(subject), len(places)) for subject in (*left, *right)]
        members = list({id(subject): subject for subject in (*left, *right)}.values())
        stored = Stored(
            *join_entries([one.entry for one in members], members[0].single, torch.device(device))
        )
        objects = torch.tensor(own, device=device).view(2, -1)
        (graph, nodes), (other, others) = _pad(left, device), _pad(right, device)
        truth = torch.zeros(*graph.mask.shape, other.mask.shape[1], dtype=torch.bool, device=device)
        pairs = GraphPair(graph, other, truth)
        yield SubjectPairs(stored, PairBatch(pairs, objects[0], objects[1], nodes, others))


def _pad(subjects: Sequence[Subject], device: torch.device | str) -> tuple[Graph, Tensor]:
    """Graphs of subjects, in the user's order of nodes, and the nodes' indices, -1 on padding."""
    counts = torch.tensor([len(subject.points) for subject in subjects])
    width = max(1, int(counts.max()))
    mask = torch.arange(width) < counts[:, None]
    points = torch.zeros(len(subjects), width, 2)
    adjacency = torch.zeros(len(subjects), width, width)
    for row, subject in enumerate(subjects):
        count = len(subject.points)
        points[row, :count], adjacency[row, :count, :count] = subject.points, subject.adjacency
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
