"""Objects of a split with what is kept of their images, and the batches that are drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int

from quadmatch.datasets import DATASETS
from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.gathering import KeypointTable, PairBatch, gather_pairs, tabulate
from quadmatch.datasets.pairs import Group, group_by_category, sample_batch
from quadmatch.experiment import Experiment
from quadmatch.features.cache import FeatureStore
from quadmatch.features.extraction import Progress, fill_store
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.trunk import join_entries
from quadmatch.features.weights import cache_folder
from quadmatch.sections import DataSection, TrainingSection
from quadmatch.subjects import Stored


def load_split(data: DataSection, split: str) -> list[Annotation]:
    """The objects of a split of the experiment's data set."""
    annotations = DATASETS[data.name](data.root, split, **data.options)
    if not annotations:
        raise ValueError(f"{data.name}, split {split!r}: there are no objects")
    return annotations


def open_store(extractor: FeatureExtractor, folder: Path | None = None) -> FeatureStore:
    """Where what an extractor keeps lies: in `folder`, or in the usual cache."""
    return FeatureStore.open(folder or cache_folder() / "features", extractor.key)


@dataclass(frozen=True, eq=False)
class Sampler:
    """Batches of training as a pure function of (seed, step, rank, world size)."""

    groups: list[Group]
    table: KeypointTable
    names: list[str]
    """Of the objects in the store."""
    store: FeatureStore
    extractor: FeatureExtractor
    data: DataSection
    training: TrainingSection

    def sample(self, step: int, rank: int = 0, world_size: int = 1) -> tuple[Stored, PairBatch]:
        """The objects of a step, each once, and all their pairs."""
        drawn = sample_batch(
            self.groups,
            seed=self.training.seed,
            step=step,
            classes=self.training.classes,
            objects=self.training.objects,
            protocol=self.data.protocol,
            rank=rank,
            world_size=world_size,
        )
        return self.gather(drawn.objects, drawn.pairs)

    def gather(
        self, objects: Int[np.ndarray, " O"], pairs: Int[np.ndarray, "P 2"]
    ) -> tuple[Stored, PairBatch]:
        """What is kept of some objects, and pairs given by their places among these objects."""
        source, target = pairs.T
        batch = gather_pairs(
            self.table,
            objects[source],
            objects[target],
            self.data.protocol,
            construction=self.data.construction,
        )
        entries = [self.store.get(self.names[index]) for index in objects]
        device = torch.device(self.training.device)
        stored = Stored(*join_entries(entries, self.extractor.single, device))
        moved = (one.to(device) for one in (batch.source_nodes, batch.target_nodes))
        places = (torch.from_numpy(np.ascontiguousarray(one)).to(device) for one in (source, target))
        return stored, PairBatch(batch.pairs.to(device), *places, *moved)


def build_sampler(
    experiment: Experiment,
    extractor: FeatureExtractor,
    annotations: Sequence[Annotation],
    progress: Progress | None = None,
) -> Sampler:
    """The sampler of some objects; what their images give is computed first, where it is not kept yet."""
    store = open_store(extractor, experiment.features.cache)
    names = fill_store(store, extractor, annotations, progress=progress)
    table = tabulate(annotations, experiment.data.size)
    groups = group_by_category(annotations)
    return Sampler(groups, table, names, store, extractor, experiment.data, experiment.training)
