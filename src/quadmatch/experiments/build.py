"""What an experiment's tables stand for: its objects, its network, its loss, and where features are kept."""

from __future__ import annotations

from pathlib import Path

import torch

from quadmatch.datasets import DATASETS
from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.hashing import hash_text
from quadmatch.experiments.reading import Experiment, ExperimentError
from quadmatch.experiments.schema import DataSection, FeaturesSection
from quadmatch.features.cache import FeatureStore
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.levels import build_extractor
from quadmatch.features.weights import cache_folder
from quadmatch.layers.quadratic_constraint import QuadraticStep
from quadmatch.losses import LOSSES
from quadmatch.matcher import Matcher
from quadmatch.matching import Loss
from quadmatch.methods import METHODS


def load_split(data: DataSection, split: str) -> list[Annotation]:
    """The objects of a split of the experiment's data set."""
    annotations = DATASETS[data.name](data.root, split, **data.options)
    if not annotations:
        raise ValueError(f"{data.name}, split {split!r}: there are no objects")
    return annotations


def open_store(extractor: FeatureExtractor, folder: Path | None = None) -> FeatureStore:
    """Where what an extractor keeps lies: in `folder`, or in the usual cache."""
    return FeatureStore.open(folder or cache_folder() / "features", extractor.key)


def build_features(features: FeaturesSection, size: int, precision: str | None = None) -> FeatureExtractor:
    """What computes features of crops of `size` pixels; `precision` overrides the section's."""
    if features.trunk == "vgg16_bn" and features.weights is None:
        raise ExperimentError("features.weights: must be given for the trunk vgg16_bn")
    return build_extractor(
        features.level,
        weights=features.weights,
        precision=precision or features.precision,
        size=size,
        layers=features.layers,
    )


def build_matcher(experiment: Experiment, precision: str | None = None) -> Matcher:
    """Features and head with initial parameters, functions of the experiment; `precision` overrides it."""
    extractor = build_features(experiment.features, experiment.data.size, precision)
    with torch.random.fork_rng():
        torch.manual_seed(hash_text("parameters", experiment.training.seed) >> 1)
        head = METHODS[experiment.head.method](**experiment.head.options)
    constraint = experiment.constraint
    return Matcher(
        extractor,
        head,
        constraint=QuadraticStep(**constraint.network) if constraint and constraint.learned else None,
        decoding=constraint.decoding if constraint else None,
        threshold=experiment.decoding.threshold,
        construction=experiment.data.construction,
        local_maps=experiment.decoding.local_maps,
    )


def build_loss(experiment: Experiment) -> Loss:
    """The experiment's loss."""
    return LOSSES[experiment.loss.name](**experiment.loss.options)
