"""Objects of a split with what is kept of their images, and the batches that are drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.between import add_between
from quadmatch.datasets.gathering import KeypointTable, gather_pairs, tabulate
from quadmatch.datasets.hashing import hash_text
from quadmatch.datasets.mirroring import add_mirrored
from quadmatch.datasets.pairs import BatchIndex, Group, add_strangers, group_by_category, sample_batch
from quadmatch.datasets.protocols import add_outliers
from quadmatch.datasets.views import VIEW, make_copies, make_views
from quadmatch.experiments.build import open_store
from quadmatch.experiments.reading import Experiment
from quadmatch.experiments.schema import DataSection
from quadmatch.experiments.training_schema import TrainingSection
from quadmatch.features.cache import FeatureStore
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.prepared import Stored
from quadmatch.features.store_features import Progress, fill_store
from quadmatch.features.trunk import join_entries
from quadmatch.graph import PairBatch
from quadmatch.training.team import Team

PLACES = 3
"""Places in an object for each outlier of a step: it lies now here, now there, or the places are learned by heart."""
MIDDLES = 0.5
"""Share of the points between keypoints that a step has which has any: now these, now those."""


@dataclass(frozen=True, eq=False)
class Sampler:
    """Batches of training as a pure function of (seed, step)."""

    groups: list[Group]
    views: list[Group]
    """Views of one object each, which some steps match in place of different objects."""
    table: KeypointTable
    names: list[str]
    """Of the objects in the store."""
    store: FeatureStore
    extractor: FeatureExtractor
    data: DataSection
    training: TrainingSection

    def sample(self, step: int) -> tuple[Stored, PairBatch]:
        """The objects of a step, each once, and all their pairs."""
        training, protocol = self.training, self.data.protocol
        everything = hash_text("protocol", training.seed, step) < training.unfiltered * 2**64
        if everything:
            protocol = "unfiltered"
        looking = hash_text("views", training.seed, step) < training.views * 2**64
        groups = self.views if looking else self.groups
        drawn = sample_batch(
            groups, seed=training.seed, step=step, classes=training.classes, objects=training.objects, protocol=protocol
        )
        if everything and training.strangers:
            known = [*self.groups, *self.views]
            drawn = add_strangers(drawn, known, seed=training.seed, step=step, count=training.strangers)
        return self.gather(drawn, protocol, step)

    def gather(self, drawn: BatchIndex, protocol: str, step: int) -> tuple[Stored, PairBatch]:
        """What is kept of the objects that were drawn, and their pairs under a protocol, with the step's outliers."""
        objects = drawn.objects
        source, target = drawn.pairs.T
        seed = hash_text("places of outliers", self.training.seed, step)
        between = hash_text("between", self.training.seed, step) < self.training.between * 2**64
        outliers = draw_outliers(self.training, step)
        table = self.table.select(objects, outliers, seed, between=MIDDLES if between else 0.0)
        batch = gather_pairs(table, source, target, protocol, construction=self.data.construction)
        entries = [self.store.get(self.names[index]) for index in objects]
        device = torch.device(self.training.device)
        stored = Stored(*join_entries(entries, self.extractor.single, device))
        moved = (one.to(device) for one in (batch.source_nodes, batch.target_nodes))
        places = (torch.from_numpy(np.ascontiguousarray(one)).to(device) for one in (source, target))
        return stored, PairBatch(batch.pairs.to(device), *places, *moved)


def extend_objects(annotations: list[Annotation], training: TrainingSection, size: int) -> list[Annotation]:
    """The objects as training looks at them: in a mirror, as copies and views, with points that nobody annotated."""
    seen = make_views(annotations, training.view_objects, size) if training.views else []
    shown = add_mirrored(annotations) if training.flip else annotations
    shown = [*shown, *make_copies(shown, training.copies, training.copy_strength, size)]
    if training.outliers:
        count = PLACES * training.outliers
        # A run with another seed has other places: one that goes on from it cannot know them by heart.
        shown, seen = (add_outliers(one, count, "uniform", seed=training.seed, size=size) for one in (shown, seen))
    return [*(add_between(shown) if training.between else shown), *seen]


def draw_outliers(training: TrainingSection, step: int) -> int:
    """How many points that match nothing the objects of a step have: none in half of the steps."""
    if not training.outliers:
        return 0
    return max(0, hash_text("outliers", training.seed, step) % (2 * training.outliers) + 1 - training.outliers)


def build_sampler(
    experiment: Experiment,
    extractor: FeatureExtractor,
    annotations: Sequence[Annotation],
    team: Team,
    progress: Progress | None = None,
) -> Sampler:
    """The sampler of some objects; what their images give is computed first, where it is not kept yet."""
    if team.world_size > 1:  # Each rank computes its share; then all find everything.
        own = annotations[team.rank :: team.world_size]
        fill_store(open_store(extractor, experiment.features.cache), extractor, own, progress=progress)
        team.wait()
    store = open_store(extractor, experiment.features.cache)
    names = fill_store(store, extractor, annotations, progress=progress)
    table = tabulate(annotations, experiment.data.size)
    groups = group_by_category(annotations)
    views = [group for group in groups if group.category.startswith(VIEW)]
    if experiment.training.views and not views:
        raise ValueError("training.views: no object has enough corners for views of it")
    objects = [group for group in groups if not group.category.startswith(VIEW)]
    return Sampler(objects, views, table, names, store, extractor, experiment.data, experiment.training)
