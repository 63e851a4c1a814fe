"""Pairs of objects to padded pairs of graphs, fast enough for every training step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt64
from numpy.typing import NDArray

from quadmatch.datasets.annotation import Annotation, frame_points
from quadmatch.datasets.hashing import hash_text, hash_texts, mix, uniform
from quadmatch.datasets.protocols import BETWEEN, OUTLIER, check_protocol
from quadmatch.delaunay import CONSTRUCTIONS
from quadmatch.graph import Graph, GraphPair, PairBatch

ABSENT, ALONE = -1, -2


@dataclass(frozen=True, eq=False)
class KeypointTable:
    """The keypoints of many objects as padded arrays, made once."""

    points: Float[np.ndarray, "O K 2"]
    """In the frame of the crop, float32."""
    identity: Int[np.ndarray, "O K"]
    """A number for each (category, name); -1 on padding, -2 for a point that matches nothing."""
    hashes: UInt64[np.ndarray, " O"]
    keys: UInt64[np.ndarray, "O K"]
    """Hashes of the keypoints' names."""
    between: Bool[np.ndarray, "O K"]
    """Which of them are points between two keypoints."""

    def select(
        self, objects: Int[np.ndarray, " P"], outliers: int, seed: int, *, between: float = 0.0
    ) -> KeypointTable:
        """Some rows, each with so many of its points that match nothing, and that share of those between keypoints.

        Which, depends on the seed; points between keypoints are the same in all objects, so that they have partners.
        """
        identity, hashes, keys = self.identity[objects], self.hashes[objects], self.keys[objects]
        alone, middle = identity == ALONE, self.between[objects]
        chance = np.where(alone, uniform(mix(seed, hashes[:, None], keys)), 2.0)
        drawn = chance.argsort(1).argsort(1) < outliers
        absent = (alone & ~drawn) | (middle & (uniform(mix(seed, keys)) >= between))
        return KeypointTable(self.points[objects], np.where(absent, ABSENT, identity), hashes, keys, middle)


def tabulate(annotations: Sequence[Annotation], size: int = 256) -> KeypointTable:
    """The table of these objects, in the order given; keypoints in each object's own order."""
    width = max([1, *(len(one.names) for one in annotations)])
    points = np.zeros((len(annotations), width, 2), dtype=np.float32)
    identity = np.full((len(annotations), width), ABSENT, dtype=np.int64)
    keys = np.zeros((len(annotations), width), dtype=np.uint64)
    between = np.zeros((len(annotations), width), dtype=bool)
    numbers: dict[tuple[str, str], tuple[int, int]] = {}
    for row, one in enumerate(annotations):
        points[row, : len(one.names)] = frame_points(one, size)
        for column, name in enumerate(one.names):
            known = numbers.setdefault((one.category, name), (len(numbers), hash_text(name)))
            identity[row, column] = ALONE if name.startswith(OUTLIER) else known[0]
            keys[row, column] = known[1]
            between[row, column] = name.startswith(BETWEEN)
    return KeypointTable(points, identity, hash_texts(one.name for one in annotations), keys, between)


def gather_pairs(
    table: KeypointTable,
    source: Int[np.ndarray, " P"],
    target: Int[np.ndarray, " P"],
    protocol: str = "intersection",
    *,
    construction: str = "delaunay",
) -> PairBatch:
    """The graphs of the keypoints that the protocol admits, of objects `source` against objects `target`.

    The order of a graph's nodes is shuffled by a hash of the names of both objects and of the keypoints, so
    it says nothing of the truth and depends on the pair alone.
    """
    check_protocol(protocol)
    if construction not in CONSTRUCTIONS:
        raise ValueError(f"construction must be one of {', '.join(CONSTRUCTIONS)}; got {construction!r}")
    if not len(source):
        raise ValueError("gather_pairs needs at least one pair, got none")
    left, right = table.identity[source], table.identity[target]
    common = (left[:, :, None] == right[:, None, :]) & (left >= 0)[:, :, None]
    take_left, take_right = left != ABSENT, right != ABSENT
    if protocol != "unfiltered":
        take_left &= common.any(2) | (left == ALONE)
    if protocol == "intersection":
        take_right &= common.any(1) | (right == ALONE)
    source_nodes, source_graph = _build(table, source, target, 0, take_left, construction)
    target_nodes, target_graph = _build(table, target, source, 1, take_right, construction)
    rows = np.arange(len(source))[:, None, None]
    truth = common[rows, source_nodes[:, :, None], target_nodes[:, None, :]]
    truth &= (source_nodes >= 0)[:, :, None] & (target_nodes >= 0)[:, None, :]
    names = tuple(
        torch.from_numpy(np.where(nodes >= 0, known[rows[:, 0], nodes], ABSENT))
        for known, nodes in ((left, source_nodes), (right, target_nodes))
    )
    return PairBatch(
        GraphPair(source_graph, target_graph, torch.from_numpy(truth), (names[0], names[1])),
        torch.from_numpy(np.asarray(source, dtype=np.int64)),
        torch.from_numpy(np.asarray(target, dtype=np.int64)),
        torch.from_numpy(source_nodes),
        torch.from_numpy(target_nodes),
    )


def _build(
    table: KeypointTable,
    objects: NDArray[np.int64],
    others: NDArray[np.int64],
    side: int,
    take: Bool[np.ndarray, "P K"],
    construction: str,
) -> tuple[NDArray[np.int64], Graph]:
    """Shuffled nodes, -1 on padding, and the graphs on them."""
    hashes = mix(side, table.hashes[objects], table.hashes[others])
    keys = mix(hashes[:, None], table.keys[objects])
    width = max(1, int(take.sum(1).max()))
    order = np.lexsort((keys, ~take), axis=1)[:, :width]
    rows = np.arange(len(objects))[:, None]
    mask = take[rows, order]
    adjacency = join_points(table.points[objects], take, construction)[
        rows[:, :, None], order[:, :, None], order[:, None, :]
    ]
    points = np.where(mask[:, :, None], table.points[objects[:, None], order], np.float32(0))
    graph = Graph(torch.from_numpy(points), torch.from_numpy(mask), torch.from_numpy(adjacency.astype(np.float32)))
    return np.where(mask, order, -1), graph


def join_points(
    points: Float[np.ndarray, "P K 2"], take: Bool[np.ndarray, "P K"], construction: str
) -> NDArray[np.uint8]:
    """Adjacency of the taken keypoints of each object, at the keypoints' places in the table."""
    if construction == "delaunay":
        from quadmatch.datasets.triangulation import triangulate_many

        return triangulate_many(points, take)
    join = CONSTRUCTIONS[construction]
    adjacency = np.zeros((*take.shape, take.shape[1]), dtype=np.uint8)
    for row, subset in enumerate(take):
        places = np.flatnonzero(subset)
        adjacency[row][np.ix_(places, places)] = join(torch.from_numpy(points[row, places])).numpy()
    return adjacency
