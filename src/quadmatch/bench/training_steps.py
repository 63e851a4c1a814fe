"""Training steps to measure: of a whole matcher on made-up objects, and of a head alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import torch
from torch import nn

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.gathering import gather_pairs, tabulate
from quadmatch.experiments.training_schema import TrainingSection
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.prepared import Stored
from quadmatch.features.trunk import join_entries
from quadmatch.graph import PairBatch
from quadmatch.layers.quadratic_constraint import QuadraticConstraint
from quadmatch.losses import false_matching
from quadmatch.matcher import Matcher
from quadmatch.matching import EDGE, LOCAL, Features, Loss
from quadmatch.methods import METHODS
from quadmatch.training.optimisation import build_optimiser


def make_objects(classes: int, objects: int, keypoints: int, size: int = 256) -> list[Annotation]:
    """Objects with random pixels and keypoints, all of which they have in common."""
    random = np.random.default_rng(0)
    names = tuple(str(number) for number in range(keypoints))
    made = []
    for index in range(classes * objects):
        pixels = random.integers(0, 256, (size, size, 3), dtype=np.uint8)
        points = random.uniform(0, size, (keypoints, 2))
        category = str(index // objects)
        made.append(Annotation(f"{index:04d}", category, partial(np.array, pixels), None, names, points))
    return made


def list_pairs(classes: int, objects: int) -> tuple[Any, Any]:
    """All pairs of objects of one class."""
    place = np.stack(np.triu_indices(objects, 1))
    pairs = (place[:, None] + objects * np.arange(classes)[None, :, None]).reshape(2, -1)
    return pairs[0], pairs[1]


def keep(extractor: FeatureExtractor, annotations: list[Annotation]) -> Stored:
    """What the extractor keeps of the objects."""
    images = torch.from_numpy(np.stack([one.image() for one in annotations if callable(one.image)]))
    points = [torch.from_numpy(one.points).float() for one in annotations]
    return Stored(*join_entries(extractor.extract(images, points), extractor.single, torch.device("cpu")))


def make_step(matcher: Matcher, stored: Stored, batch: PairBatch) -> Callable[[], None]:
    """One training step: features of every object, all pairs, backward, update."""
    optimiser, loss = build_optimiser(matcher, TrainingSection()), false_matching()

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss(matcher(stored, batch), batch.pairs).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def draw_pairs(pairs: int, fewest: int, most: int) -> tuple[PairBatch, tuple[Features, Features]]:
    """Pairs of random keypoints, all of which have partners, and random features of them."""
    random = np.random.default_rng(0)
    counts = np.linspace(fewest, most, pairs).round().astype(int)
    annotations = []
    for index, count in enumerate(np.repeat(counts, 2)):
        names = tuple(str(number) for number in range(count))
        points = random.uniform(0, 256, (count, 2))
        annotations.append(
            Annotation(f"{index:04d}", str(index // 2), no_picture, (0.0, 0.0, 256.0, 256.0), names, points)
        )
    source = np.arange(0, 2 * pairs, 2)
    batch = gather_pairs(tabulate(annotations), source, source + 1)
    generator = torch.Generator().manual_seed(0)

    def draw(nodes: int) -> Features:
        local, edge = torch.nn.functional.normalize(torch.randn(2, pairs, nodes, 512, generator=generator), dim=-1)
        return Features({LOCAL: local, EDGE: edge}, torch.zeros(pairs, 512))

    nodes = batch.pairs.mask.shape[1:]
    return batch, (draw(nodes[0]), draw(nodes[1]))


def make_head_step(method: str, pairs: int, fewest: int, most: int, **options: Any) -> Callable[[], None]:
    """One training step of a head under the constraint alone, on features that are given."""
    head = QuadraticConstraint(METHODS[method](**options), outer=1)
    return train_head(head, false_matching(), *draw_pairs(pairs, fewest, most))


def train_head(
    head: nn.Module, loss: Loss, batch: PairBatch, features: tuple[Features, Features]
) -> Callable[[], None]:
    """One training step of any head with any loss, on features that are given."""
    optimiser = build_optimiser(head, TrainingSection())

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss(head(batch.pairs, *features), batch.pairs).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def no_picture() -> Any:
    """For objects that are points alone."""
    return np.zeros((1, 1, 3), dtype=np.uint8)


def time_best(step: Callable[[], None], repeats: int) -> float:
    """Fewest processor seconds of a step, after one that warms up."""
    step()
    seconds = []
    for _ in range(repeats):
        began = process_time()
        step()
        seconds.append(process_time() - began)
    return min(seconds)


def profile(step: Callable[[], None]) -> int:
    """Python functions that are called in a step, after one that warms up."""
    step()
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        step()
    finally:
        sys.setprofile(None)
    return calls
