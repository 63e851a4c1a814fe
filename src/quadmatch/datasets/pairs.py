"""Which objects are paired: fixed lists for testing, and the batches of training.

Both are pure functions of the objects' names and some numbers: neither workers, batch size, the order of
files nor the order of the list that is given change them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, UInt64
from numpy.typing import NDArray

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.hashing import Hashes, hash_text, hash_texts, mix
from quadmatch.datasets.protocols import ADDED, MINIMUM, check_protocol


class PairIndex(NamedTuple):
    """Two objects of one category: their names, and where they are in the list that was given."""

    category: str
    source_name: str
    target_name: str
    source: int
    target: int


@dataclass(frozen=True, eq=False)
class Group:
    """The objects of one category, sorted by name."""

    category: str
    names: tuple[str, ...]
    indices: Int[np.ndarray, " n"]
    """Of each object in the list that was given."""
    hashes: UInt64[np.ndarray, " n"]
    present: Bool[np.ndarray, "n V"]
    """Which object has which of the category's keypoints."""


def group_by_category(annotations: Sequence[Annotation]) -> list[Group]:
    """The objects of each category, for `draw_test_pairs` and `sample_batch`; categories sorted."""
    order = sorted(range(len(annotations)), key=lambda index: annotations[index].name)
    members: dict[str, list[int]] = {}
    for before, index in zip([-1, *order], order):
        if before >= 0 and annotations[before].name == annotations[index].name:
            raise ValueError(f"objects need different names, got {annotations[index].name!r} twice")
        members.setdefault(annotations[index].category, []).append(index)
    return [_group(annotations, category, members[category]) for category in sorted(members)]


def _group(annotations: Sequence[Annotation], category: str, indices: list[int]) -> Group:
    keypoints = [{one for one in annotations[i].names if not one.startswith(ADDED)} for i in indices]
    vocabulary = {name: column for column, name in enumerate(sorted(set().union(*keypoints)))}
    present = np.zeros((len(indices), len(vocabulary)), dtype=bool)
    for row, known in enumerate(keypoints):
        present[row, [vocabulary[name] for name in known]] = True
    names = tuple(annotations[i].name for i in indices)
    return Group(category, names, np.array(indices, dtype=np.int64), hash_texts(names), present)


def find_valid(present: Bool[np.ndarray, "n V"], protocol: str) -> Bool[np.ndarray, "n n"]:
    """Which ordered pairs of different objects the protocol admits."""
    if protocol == "unfiltered":
        some = np.asarray(present.any(1))
        valid: NDArray[np.bool_] = some[:, None] & some[None, :]
    else:
        numbers = present.astype(np.float32)
        valid = numbers @ numbers.T >= MINIMUM
    np.fill_diagonal(valid, False)
    return valid


def draw_test_pairs(
    annotations: Sequence[Annotation],
    protocol: str = "intersection",
    *,
    seed: int = 0,
    pairs_per_class: int | None = 1000,
) -> list[PairIndex]:
    """The pairs of every category on which a result is reported, in a fixed order.

    Drawn uniformly from the admitted ordered pairs, none twice before all have been drawn. With None, every
    pair once, in one direction where the protocol treats source and target alike and else in both.
    """
    check_protocol(protocol)
    if pairs_per_class is not None and pairs_per_class < 1:
        raise ValueError(f"pairs_per_class must be at least 1 or None for all pairs, got {pairs_per_class}")
    pairs: list[PairIndex] = []
    for group in group_by_category(annotations):
        key = hash_text("test pairs", protocol, seed, group.category)
        for first, second in _choose(group, protocol, key, pairs_per_class):
            names = group.names[first], group.names[second]
            places = int(group.indices[first]), int(group.indices[second])
            pairs.append(PairIndex(group.category, *names, *places))
    return pairs


def _choose(group: Group, protocol: str, key: int, count: int | None) -> NDArray[np.int64]:
    valid = find_valid(group.present, protocol)
    keys = mix(key, group.hashes[:, None], group.hashes[None, :])
    if count is None:
        if protocol != "inclusion":
            valid &= keys < keys.T
        return np.argwhere(valid)
    candidates = np.argwhere(valid)
    order = np.argsort(keys[valid], kind="stable")
    if not len(order):
        return candidates
    return candidates[np.resize(order, count)]


def pairs_hash(pairs: Sequence[PairIndex]) -> str:
    """16 hexadecimal digits that tell two lists of pairs apart; the objects' names and order count."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update("\x1f".join(pair[:3]).encode() + b"\n")
    return digest.hexdigest()[:16]


class BatchIndex(NamedTuple):
    """The objects of a training batch, and its pairs as two places among these objects."""

    objects: Int[np.ndarray, " O"]
    """Indices into the list that was grouped."""
    pairs: Int[np.ndarray, "P 2"]


def sample_batch(
    groups: Sequence[Group], *, seed: int, step: int, classes: int = 8, objects: int = 4, protocol: str = "intersection"
) -> BatchIndex:
    """A few objects of each of several categories and all their admitted pairs.

    At most `classes` categories, no more than there are, each with `objects` objects. A pure function of
    (seed, step): processes that train together draw the same batch and share it.
    """
    check_protocol(protocol)
    if min(classes, objects - 1) < 1:
        raise ValueError(f"a batch needs classes ≥ 1 and objects ≥ 2, got {classes} and {objects}")
    for attempt in range(1000):
        key = hash_text("batch", seed, step, attempt)
        batch = _draw(groups, key, classes, objects, protocol)
        if len(batch.pairs):
            return batch
    raise ValueError(f"no two objects of a category make a pair under protocol {protocol!r}")


def add_strangers(batch: BatchIndex, groups: Sequence[Group], *, seed: int, step: int, count: int) -> BatchIndex:
    """The batch with up to `count` pairs more whose two objects are of different categories."""
    category = np.concatenate([np.full(len(group.indices), number) for number, group in enumerate(groups)])
    category = category[np.argsort(np.concatenate([group.indices for group in groups]))]
    own = category[batch.objects]
    candidates = np.argwhere(np.triu(own[:, None] != own[None, :]))
    keys = mix(
        hash_text("strangers", seed, step), candidates[:, 0].astype(np.uint64), candidates[:, 1].astype(np.uint64)
    )
    return BatchIndex(batch.objects, np.concatenate([batch.pairs, candidates[_smallest(keys, count)]]))


def _draw(groups: Sequence[Group], key: int, classes: int, objects: int, protocol: str) -> BatchIndex:
    chosen = _smallest(mix(key, hash_texts(group.category for group in groups)), classes)
    places: list[NDArray[np.int64]] = []
    pairs: list[NDArray[np.int64]] = []
    start = 0
    for group in (groups[index] for index in chosen):
        members = _smallest(mix(key, group.hashes), objects)
        valid = np.triu(find_valid(group.present[members], protocol))
        places.append(group.indices[members])
        pairs.append(np.argwhere(valid) + start)
        start += len(members)
    return BatchIndex(np.concatenate(places), np.concatenate(pairs))


def _smallest(keys: Hashes, count: int) -> NDArray[np.int64]:
    """Places of the `count` smallest keys, smallest first."""
    return np.argsort(keys, kind="stable")[:count]
