"""Speed of training: the backbone's levels, and what a step of the head costs as batches grow."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from quadmatch.bench.measurement import Row, make_row, one_thread
from quadmatch.bench.throughput import measure_extractor
from quadmatch.bench.training_steps import keep, list_pairs, make_head_step, make_objects, make_step, profile, time_best
from quadmatch.datasets.gathering import gather_pairs, tabulate
from quadmatch.experiments.reading import read_experiment
from quadmatch.features.extractor import Level
from quadmatch.features.levels import EXTRACTORS, build_extractor
from quadmatch.features.vgg import VGG16
from quadmatch.layers.quadratic_constraint import QuadraticStep
from quadmatch.matcher import Matcher
from quadmatch.methods import METHODS

METHOD = "dgm2"
PRECISION = "float32,channels_last,1"


def run() -> list[Row]:
    """All rows: processor seconds on one thread, ours and the peer's of each row."""
    with one_thread():
        return [
            *(measure_level(level) for level in EXTRACTORS),
            compare_levels(),
            *(compare_batches(method) for method in ("dgm1", "dgm2")),
            *(compare_batches(method, f"qc{method}_voc") for method in ("dgm1", "dgm2")),
            *count_calls(),
        ]


def measure_level(level: Level, **sizes: int) -> Row:
    """Images a second that one thread trains the backbone on, and extracts once; shares of convolution."""
    extractor = build_extractor(level, weights=draw_weights(), precision=PRECISION)
    measured = measure_extractor(extractor, **sizes)
    return {
        "name": f"images a second at level {level}, one thread",
        "size": "10 keypoints an image",
        "ours": measured["train"].images_per_second,
        "convolution_share": measured["train"].convolution_share,
        "extracted_once_images_a_second": measured["extract"].images_per_second,
        "extracted_once_convolution_share": measured["extract"].convolution_share,
    }


def draw_weights() -> dict[str, Tensor]:
    """VGG16 as it is initialised: as fast as one that was trained."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return VGG16("relu5_3").state_dict()


def compare_levels(classes: int = 4, objects: int = 4, keypoints: int = 10) -> Row:
    """A training step of level `local` beside one of level `full`: the same objects, pairs and head."""
    annotations = make_objects(classes, objects, keypoints)
    source, target = list_pairs(classes, objects)
    batch = gather_pairs(tabulate(annotations), source, target)
    weights = draw_weights()
    seconds = {}
    for level, repeats in (("local", 5), ("full", 2)):
        extractor = build_extractor(level, weights=weights, precision=PRECISION)
        matcher = Matcher(extractor, METHODS[METHOD](), constraint=QuadraticStep(outer=1))
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
