"""Speed of training: the backbone's levels, and what a step of the head costs as batches grow."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.gathering import PairBatch, gather_pairs, tabulate
from quadmatch.experiment import read_experiment
from quadmatch.features.extractor import EXTRACTORS, FeatureExtractor, Level, build_extractor
from quadmatch.features.throughput import measure_extractor
from quadmatch.features.trunk import join_entries
from quadmatch.features.vgg import VGG16
from quadmatch.losses import false_matching
from quadmatch.matcher import Matcher
from quadmatch.matching import Features
from quadmatch.methods import METHODS
from quadmatch.optimisation import build_optimiser
from quadmatch.sections import TrainingSection
from quadmatch.subjects import Stored

Row = dict[str, Any]
METHOD = "qcdgm2"
PRECISION = "float32,channels_last,1"


def run() -> list[Row]:
    """All rows: processor seconds on one thread, ours and the peer's of each row."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [
            *(measure_level(level) for level in EXTRACTORS),
            compare_levels(),
            *(compare_batches(method) for method in ("qcdgm1", "qcdgm2")),
            *(compare_batches(method, f"{method}_voc") for method in ("qcdgm1", "qcdgm2")),
            *count_calls(),
        ]
    finally:
        torch.set_num_threads(threads)


def measure_level(level: Level, **sizes: int) -> Row:
    """Images a second that one thread trains the backbone on, and extracts once; shares of convolution."""
    extractor = build_extractor(level, weights=_draw_weights(), precision=PRECISION)
    measured = measure_extractor(extractor, **sizes)
    return {
        "name": f"images a second at level {level}, one thread",
        "size": "10 keypoints an image",
        "ours": measured["train"].images_per_second,
        "convolution_share": measured["train"].convolution_share,
        "extracted_once_images_a_second": measured["extract"].images_per_second,
        "extracted_once_convolution_share": measured["extract"].convolution_share,
    }


def _draw_weights() -> dict[str, Tensor]:
    """VGG16 as it is initialised: as fast as one that was trained."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return VGG16("relu5_3").state_dict()


def compare_levels(classes: int = 4, objects: int = 4, keypoints: int = 10) -> Row:
    """A training step of level `local` beside one of level `full`: the same objects, pairs and head."""
    annotations = make_objects(classes, objects, keypoints)
    source, target = list_pairs(classes, objects)
    batch = gather_pairs(tabulate(annotations), source, target)
    weights = _draw_weights()
    seconds = {}
    for level, repeats in (("local", 5), ("full", 2)):
        extractor = build_extractor(level, weights=weights, precision=PRECISION)
        matcher = Matcher(extractor, METHODS[METHOD](preset="compact"))
        step = make_step(matcher, keep(extractor, annotations), batch)
        seconds[level] = time_best(step, repeats)
    size = f"{len(annotations)} objects, {len(source)} pairs, {keypoints} keypoints"
    return make_row("step at level local, beside full", size, seconds["local"], seconds["full"], 15.0)


def compare_batches(method: str = METHOD, experiment: str | None = None) -> Row:
    """A step of the head on 32 pairs beside one on 8: less than three times as long, for the compact preset.

    An experiment's head may be so wide that its matrix products, not its calls, are what a step of 8 pairs
    waits for: its row has no bound.
    """
    options = read_experiment(experiment).head.options if experiment else {}
    small, large = (time_best(make_head_step(method, pairs, 10, 20, **options), 12) for pairs in (8, 32))
    ratio = large / small
    row: Row = {
        "name": f"step of the head of {experiment or method}, batch 32 over batch 8",
        "size": "10 to 20 keypoints",
        "ours": large,
        "peer": small,
        "ratio": ratio,
    }
    return row if experiment else row | {"required": 3.0, "met": ratio < 3.0}


def count_calls(**options: Any) -> list[Row]:
    """Python calls in a step of the head, beside those of a smaller batch or of smaller graphs: as many."""
    base = profile(make_head_step(METHOD, 8, 10, 10, **options))
    rows = []
    for size, count, nodes in (("batch 32 over 8", 32, 10), ("20 keypoints over 10", 8, 20)):
        calls = profile(make_head_step(METHOD, count, nodes, nodes, **options))
        rows.append(
            {
                "name": "Python calls of a step of the head",
                "size": size,
                "ours": calls,
                "peer": base,
                "ratio": calls / base,
                "required": 1.0,
                "met": calls == base,
            }
        )
    return rows


def make_row(name: str, size: str, ours: float, peer: float, required: float) -> Row:
    """A row in which the peer must take `required` times as long."""
    ratio = peer / ours
    return {
        "name": name,
        "size": size,
        "ours": ours,
        "peer": peer,
        "ratio": ratio,
        "required": required,
        "met": ratio >= required,
    }


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


def make_head_step(method: str, pairs: int, fewest: int, most: int, **options: Any) -> Callable[[], None]:
    """One training step of a head alone, on features that are given."""
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
        local, edge = torch.nn.functional.normalize(
            torch.randn(2, pairs, nodes, 512, generator=generator), dim=-1
        )
        return Features(local, edge, torch.zeros(pairs, 512))

    nodes = batch.pairs.mask.shape[1:]
    features = draw(nodes[0]), draw(nodes[1])
    head, loss = METHODS[method](**{"preset": "compact"} | options), false_matching()
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
