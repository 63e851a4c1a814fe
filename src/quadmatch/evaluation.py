"""How many keypoints of a data set a matcher matches right: per class and mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.gathering import gather_pairs, tabulate
from quadmatch.datasets.pairs import PairIndex, draw_test_pairs, pairs_hash
from quadmatch.features.cache import FeatureStore
from quadmatch.features.extraction import Progress, fill_store, read_features
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.weights import cache_folder
from quadmatch.matcher import Matcher, move_batch
from quadmatch.matching import Features
from quadmatch.metrics import Counts, count_matches
from quadmatch.scores import RARE, Evaluation, average, score

PAIRS, OBJECTS = 100, 32
"""Pairs and objects that are computed together: fixed, so that no setting of the machine changes a result."""


@torch.no_grad()
def evaluate(
    matcher: Matcher,
    annotations: Sequence[Annotation],
    *,
    protocol: str = "intersection",
    seed: int = 0,
    pairs: int | None = 1000,
    partial: bool = False,
    constraint: bool = True,
    store: FeatureStore | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Match `pairs` pairs of each class; what the frozen network gives is computed once an object.

    The list of pairs depends on the objects' names, the protocol and the seed alone. `progress` hears of
    objects extracted; `store` is where that is kept, the usual place if not given.
    """
    extractor = matcher.features
    if not isinstance(extractor, FeatureExtractor):
        raise TypeError("evaluate needs a matcher whose features are a FeatureExtractor")
    chosen = draw_test_pairs(annotations, protocol, seed=seed, pairs_per_class=pairs)
    if not chosen:
        raise ValueError(f"protocol {protocol!r} admits no pair of these {len(annotations)} objects")
    used = sorted({index for pair in chosen for index in (pair.source, pair.target)})
    if store is None:
        store = FeatureStore.open(cache_folder() / "features", extractor.key)
    entries = fill_store(store, extractor, [annotations[index] for index in used], progress=progress)
    names = dict(zip(used, entries))
    training = matcher.training
    matcher.eval()
    try:
        run = _Run(matcher, extractor, annotations, store, names, protocol, partial, constraint)
        groups = groupby(chosen, key=lambda pair: pair.category)
        counts = {category: run.match_class(list(group)) for category, group in groups}
    finally:
        matcher.train(training)
    objects = Counter(annotation.category for annotation in annotations)
    classes = {name: score(found, objects[name]) for name, found in counts.items()}
    common = [scores for scores in classes.values() if scores.objects >= RARE]
    return Evaluation(
        mean=average(list(classes.values())),
        mean_common=average(common or list(classes.values())),
        classes=classes,
        protocol=protocol,
        pairs_hash=pairs_hash(chosen),
        seed=seed,
        constraint=constraint,
        partial=partial,
        without_pairs=sorted(objects.keys() - classes.keys()),
    )


@dataclass(frozen=True, eq=False)
class _Run:
    """What all classes of one evaluation share."""

    matcher: Matcher
    extractor: FeatureExtractor
    annotations: Sequence[Annotation]
    store: FeatureStore
    names: dict[int, str]
    """In the store, of the objects that take part."""
    protocol: str
    partial: bool
    constraint: bool

    def match_class(self, pairs: Sequence[PairIndex]) -> Counts:
        """Counts of one class's pairs; its objects' features are computed first, once each."""
        # By name, so that not even the order of sums depends on the order of the list that was given.
        named = {(pair.source_name, pair.source) for pair in pairs}
        named |= {(pair.target_name, pair.target) for pair in pairs}
        objects = [index for _, index in sorted(named)]
        features = self._read(objects)
        table = tabulate([self.annotations[index] for index in objects], self.extractor.size)
        place = {index: row for row, index in enumerate(objects)}
        rows = np.array([(place[pair.source], place[pair.target]) for pair in pairs])
        found = []
        for start in range(0, len(rows), PAIRS):
            source, target = rows[start : start + PAIRS].T
            construction = self.matcher.construction
            batch = gather_pairs(table, source, target, self.protocol, construction=construction)
            batch = move_batch(batch, self.matcher.device)
            matching = self.matcher.compare(features, batch)
            solution = self.matcher.decode(matching, batch, partial=self.partial, constraint=self.constraint)
            found.append(count_matches(solution.assignment, batch.pairs.truth))
        return Counts(*(torch.cat(parts).cpu() for parts in zip(*found)))

    def _read(self, objects: Sequence[int]) -> Features:
        chunks = [objects[start : start + OBJECTS] for start in range(0, len(objects), OBJECTS)]
        parts = [
            read_features(self.store, self.extractor, [self.names[index] for index in chunk])
            for chunk in chunks
        ]
        width = max(1, *(part.local.shape[1] for part in parts))

        def join(values: list[Tensor]) -> Tensor:
            return torch.cat([pad(one, (0, 0, 0, width - one.shape[1])) for one in values])

        local, edge = join([part.local for part in parts]), join([part.edge for part in parts])
        return Features(local, edge, torch.cat([part.whole for part in parts]))
