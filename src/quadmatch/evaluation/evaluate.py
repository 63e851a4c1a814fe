"""How many keypoints of a data set a matcher matches right: per class and mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import fmean

import numpy as np
import torch

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.gathering import gather_pairs, tabulate
from quadmatch.datasets.pairs import PairIndex, draw_test_pairs, pairs_hash
from quadmatch.evaluation.report import RARE, Conditions, Counts, Evaluation, average, count_matches, score
from quadmatch.features.cache import FeatureStore
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.store_features import Progress, fill_store, read_features
from quadmatch.features.threads import evaluating
from quadmatch.features.weights import cache_folder
from quadmatch.graph import PairBatch
from quadmatch.matcher import Matcher
from quadmatch.matching import Features, Loss, Matching

PAIRS, OBJECTS = 100, 32
"""Pairs and objects that are computed together: fixed, so that no setting of the machine changes a result."""


def evaluate(
    matcher: Matcher,
    annotations: Sequence[Annotation],
    conditions: Conditions,
    *,
    read: Sequence[Annotation] | None = None,
    store: FeatureStore | None = None,
    progress: Progress | None = None,
    loss: Loss | None = None,
) -> Evaluation:
    """Match pairs of each class and count; the frozen network runs once for each object.

    `annotations` are the objects of the conditions' split, with its outliers. The list of pairs depends on the
    objects' names, the protocol and the seed alone. `read`, `store` and `progress` as in `compare_pairs`.
    With a `loss`, its mean over the classes is measured too.
    """
    chosen = choose_pairs(annotations, conditions)
    found: dict[str, list[Counts]] = {}
    losses: dict[str, list[float]] = {}
    # A loss may look at what earlier layers say, which a network leaves out in inference mode.
    with torch.no_grad() if loss else torch.inference_mode():
        for category, batch, matching in compare_pairs(
            matcher, annotations, chosen, conditions.protocol, read=read, store=store, progress=progress
        ):
            solution = matcher.decode(matching, batch, partial=conditions.partial, constraint=conditions.constraint)
            found.setdefault(category, []).append(count_matches(solution.assignment, batch.pairs.truth))
            if loss:
                losses.setdefault(category, []).append(float(loss(matching, batch.pairs)))
    counts = {name: Counts(*(torch.cat(parts).cpu() for parts in zip(*own))) for name, own in found.items()}
    result = summarise(counts, annotations, conditions, pairs_hash(chosen))
    return replace(result, loss=fmean(map(fmean, losses.values()))) if losses else result


def choose_pairs(annotations: Sequence[Annotation], conditions: Conditions) -> list[PairIndex]:
    """The list of pairs of these conditions, class by class."""
    chosen = draw_test_pairs(annotations, conditions.protocol, seed=conditions.seed, pairs_per_class=conditions.pairs)
    if not chosen:
        raise ValueError(f"protocol {conditions.protocol!r} admits no pair of these {len(annotations)} objects")
    return chosen


@torch.no_grad()
def compare_pairs(
    matcher: Matcher,
    annotations: Sequence[Annotation],
    chosen: Sequence[PairIndex],
    protocol: str,
    *,
    read: Sequence[Annotation] | None = None,
    store: FeatureStore | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[str, PairBatch, Matching]]:
    """What the network says of the chosen pairs, in batches with the names of their classes.

    `read` are the same objects with more keypoints at their ends, if features of those are kept: one pass of the
    convolutions then serves every number of outliers. `progress` hears of objects extracted; `store` is where
    that is kept, the usual place if not given.
    """
    extractor = matcher.features
    if not isinstance(extractor, FeatureExtractor):
        raise TypeError("evaluate needs a matcher whose features are a FeatureExtractor")
    used = sorted({index for pair in chosen for index in (pair.source, pair.target)})
    if store is None:
        store = FeatureStore.open(cache_folder() / "features", extractor.key)
    kept = [(annotations if read is None else read)[index] for index in used]
    entries = dict(zip(used, fill_store(store, extractor, kept, progress=progress)))
    with evaluating(matcher):
        for category, group in groupby(chosen, key=lambda pair: pair.category):
            members = list(group)
            objects = list_objects(members)
            features = _read(store, extractor, [entries[index] for index in objects])
            table = tabulate([annotations[index] for index in objects], extractor.size)
            row = {index: number for number, index in enumerate(objects)}
            rows = np.array([(row[pair.source], row[pair.target]) for pair in members])
            for start in range(0, len(rows), PAIRS):
                source, target = rows[start : start + PAIRS].T
                batch = gather_pairs(table, source, target, protocol, construction=matcher.construction)
                batch = batch.to(matcher.device)
                yield category, batch, matcher.compare(features, batch)


def list_objects(pairs: Sequence[PairIndex]) -> list[int]:
    """The objects of some pairs, sorted by name: not even the order of sums depends on the list that was given."""
    named = {(pair.source_name, pair.source) for pair in pairs}
    named |= {(pair.target_name, pair.target) for pair in pairs}
    return [index for _, index in sorted(named)]


def summarise(
    counts: Mapping[str, Counts], annotations: Sequence[Annotation], conditions: Conditions, chosen: str
) -> Evaluation:
    """Figures of each class and their means; `chosen` is the hash of the list of pairs."""
    objects = Counter(annotation.category for annotation in annotations)
    classes = {name: score(found, objects[name]) for name, found in counts.items()}
    common = [scores for scores in classes.values() if scores.objects >= RARE]
    return Evaluation(
        mean=average(list(classes.values())),
        mean_common=average(common or list(classes.values())),
        classes=classes,
        conditions=conditions,
        pairs_hash=chosen,
        without_pairs=sorted(objects.keys() - classes.keys()),
        counts=counts,
    )


def _read(store: FeatureStore, extractor: FeatureExtractor, names: Sequence[str]) -> Features:
    chunks = [names[start : start + OBJECTS] for start in range(0, len(names), OBJECTS)]
    parts = [read_features(store, extractor, chunk) for chunk in chunks]
    return Features.cat(parts, nodes=1)
