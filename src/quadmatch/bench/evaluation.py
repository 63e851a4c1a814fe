"""Evaluating many pairs of one class against extracting features anew for each pair."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import numpy as np
import torch

from quadmatch.bench.measurement import Row, make_row, one_thread
from quadmatch.datasets.annotation import Annotation, load_crop
from quadmatch.datasets.gathering import gather_pairs, tabulate
from quadmatch.datasets.pairs import draw_test_pairs
from quadmatch.datasets.photo_warps import photo_warps
from quadmatch.evaluation.evaluate import evaluate
from quadmatch.evaluation.report import Conditions
from quadmatch.features.cache import FeatureStore
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.levels import build_extractor
from quadmatch.features.vgg import VGG16
from quadmatch.matcher import Matcher
from quadmatch.methods.dot_product import DotProduct

REQUIRED = 20.0


def run(pairs: int = 1000, views: int = 20, timed: int = 4) -> list[Row]:
    """Processor seconds on one thread, extraction of every object included, on views of one photograph.

    The peer's are estimated from `timed` pairs. The network's weights are random, which takes as long.
    """
    with one_thread():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            weights = VGG16("relu5_3").state_dict()
        extractor = build_extractor("frozen", weights=weights, precision="float32,channels_last,1")
        matcher = Matcher(extractor, DotProduct(), decoding={}).eval()
        everything = photo_warps(split="test", views=views)
        objects = [one for one in everything if one.category == everything[0].category]
        # The first of both loads compiled code.
        _match_anew(matcher, extractor, objects, 1)
        _evaluate(matcher, extractor, objects[:3], 2)
        peer = _match_anew(matcher, extractor, objects, timed) * pairs / timed
        ours = _evaluate(matcher, extractor, objects, pairs)
    name = "evaluate the pairs of a class, beside features anew for each pair"
    return [make_row(name, f"{pairs} pairs of {len(objects)} objects", ours, peer, REQUIRED)]


def _evaluate(matcher: Matcher, extractor: FeatureExtractor, objects: Sequence[Annotation], pairs: int) -> float:
    with tempfile.TemporaryDirectory(prefix="quadmatch-") as folder:
        store = FeatureStore.open(Path(folder), extractor.key)
        start = process_time()
        evaluate(matcher, objects, Conditions(pairs=pairs), store=store)
        return process_time() - start


@torch.no_grad()
def _match_anew(matcher: Matcher, extractor: FeatureExtractor, objects: Sequence[Annotation], pairs: int) -> float:
    chosen = draw_test_pairs(objects, pairs_per_class=pairs)
    start = process_time()
    for pair in chosen:
        sides = [objects[pair.source], objects[pair.target]]
        crops = [load_crop(side, extractor.size) for side in sides]
        images = torch.from_numpy(np.stack([pixels for pixels, _ in crops]))
        features = extractor.compute(images, [torch.from_numpy(points) for _, points in crops])
        batch = gather_pairs(tabulate(sides, extractor.size), np.array([0]), np.array([1]))
        matcher.decode(matcher.compare(features, batch), batch)
    return process_time() - start
