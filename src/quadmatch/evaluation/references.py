"""Labelled objects that vote at test time: each keypoint gets the name that most of them give it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice

import numpy as np
import torch
from jaxtyping import Float, Int

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.gathering import gather_pairs, tabulate
from quadmatch.datasets.pairs import PairIndex, pairs_hash
from quadmatch.evaluation.evaluate import choose_pairs, compare_pairs, summarise
from quadmatch.evaluation.report import Conditions, Evaluation, count_matches
from quadmatch.features.cache import FeatureStore
from quadmatch.features.store_features import Progress
from quadmatch.matcher import Matcher

Labels = Int[np.ndarray, " K"]
"""The number of the name that each keypoint of an object was given; -1: none."""


def evaluate_with_references(
    matcher: Matcher,
    annotations: Sequence[Annotation],
    references: Sequence[Annotation],
    conditions: Conditions,
    *,
    store: FeatureStore | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """As `evaluate`, of keypoints that are first named by the references of their class; equal names are matched."""
    chosen = choose_pairs(annotations, conditions)
    used = sorted({index for pair in chosen for index in (pair.source, pair.target)})
    named = name_keypoints(matcher, annotations, references, used, conditions, store=store, progress=progress)
    counts = {}
    for category, group in groupby(chosen, key=lambda pair: pair.category):
        rows = np.array([(pair.source, pair.target) for pair in group])
        objects, places = np.unique(rows, return_inverse=True)
        table = tabulate([annotations[index] for index in objects])
        source, target = places.reshape(rows.shape).T
        batch = gather_pairs(table, source, target, conditions.protocol, construction=matcher.construction)
        labels = np.full((len(objects), table.identity.shape[1] + 1), -1)  # A column more, for nodes of padding.
        for row, index in enumerate(objects):
            labels[row, : len(named[index])] = named[index]
        left, right = labels[source[:, None], batch.source_nodes], labels[target[:, None], batch.target_nodes]
        same = (left[:, :, None] == right[:, None, :]) & (left >= 0)[:, :, None]
        counts[category] = count_matches(torch.from_numpy(same).float(), batch.pairs.truth)
    return summarise(counts, annotations, conditions, pairs_hash(chosen))


@torch.no_grad()
def name_keypoints(
    matcher: Matcher,
    annotations: Sequence[Annotation],
    references: Sequence[Annotation],
    used: Sequence[int],
    conditions: Conditions,
    *,
    store: FeatureStore | None = None,
    progress: Progress | None = None,
) -> dict[int, Labels]:
    """The labels of the used objects: each is matched to every reference of its class, and soft matches are summed."""
    everything = [*annotations, *references]
    pairs = list(_pair(annotations, references, used))
    names = {name: number for number, name in enumerate(sorted({name for one in references for name in one.names}))}
    votes = {index: np.zeros((len(annotations[index].names), len(names))) for index in used}
    left = iter(pairs)
    for _, batch, matching in compare_pairs(
        matcher, everything, pairs, conditions.protocol, store=store, progress=progress
    ):
        settled = matcher.settle(matching, batch.pairs, constraint=conditions.constraint)
        soft = settled.assignment.double().cpu().numpy()
        for row, pair in enumerate(islice(left, len(soft))):
            own, other = (nodes[row].cpu().numpy() for nodes in (batch.source_nodes, batch.target_nodes))
            there = np.array([names[everything[pair.target].names[node]] for node in other if node >= 0], dtype=int)
            np.add.at(votes[pair.source], np.ix_(own[own >= 0], there), soft[row][np.ix_(own >= 0, other >= 0)])
    return {index: _elect(found) for index, found in votes.items()}


def _pair(
    annotations: Sequence[Annotation], references: Sequence[Annotation], used: Sequence[int]
) -> Iterator[PairIndex]:
    """Every used object with each reference of its class, class by class."""
    for index in sorted(used, key=lambda index: annotations[index].category):
        own = annotations[index]
        for place, other in enumerate(references, len(annotations)):
            if other.category == own.category:
                yield PairIndex(own.category, own.name, other.name, index, place)


def _elect(votes: Float[np.ndarray, "K L"]) -> Labels:
    """One name for each keypoint, none twice."""
    from scipy.optimize import linear_sum_assignment

    labels = np.full(len(votes), -1)
    keypoints, chosen = linear_sum_assignment(-votes)
    labels[keypoints] = chosen
    labels[votes.sum(1) == 0] = -1
    return labels
