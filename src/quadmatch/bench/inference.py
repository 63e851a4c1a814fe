"""How long a match takes when features are there: network, constraint and permutation, on one thread."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from quadmatch.bench.measurement import Row, one_thread, time_once
from quadmatch.bench.training_steps import draw_pairs
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.vgg import BLOCKS
from quadmatch.matcher import Matcher
from quadmatch.matching import Features
from quadmatch.models.load import DEFAULT, TRAINED, load

BATCHES = {1: 0.010, 64: 0.150}
"""Pairs that are matched together, and the processor seconds that they may take."""
FEWEST, MOST = 3, 13
"""Keypoints that pairs of Pascal VOC have in common."""
GROUP, POINTS = 32, 40
"""Pairs that `match-many` matches together, and keypoints of a photograph that somebody has marked."""


def run(models: tuple[str, ...] = (TRAINED, DEFAULT), rounds: int = 7) -> list[Row]:
    """Processor seconds of one pair and of a batch, the best of some rounds."""
    with one_thread():
        loaded = {name: load(name) for name in models}
        usual = [time_matches(name, one, pairs, rounds) for name, one in loaded.items() for pairs in BATCHES]
        return [*usual, time_matches(models[-1], loaded[models[-1]], GROUP, rounds, (POINTS, POINTS))]


@torch.inference_mode()
def time_matches(name: str, matcher: Matcher, pairs: int, rounds: int, keypoints: tuple[int, int] | None = None) -> Row:
    """The time from features of random keypoints to their permutation; `keypoints` are the fewest and the most."""
    fewest, most = keypoints or (FEWEST if pairs > 1 else MOST, MOST)  # A single pair is a large one.
    assert isinstance(matcher.features, FeatureExtractor)
    batch, (source, _) = draw_pairs(pairs, fewest, most)
    features = draw_features(matcher.features.layers, 2 * pairs, source.nodes)

    def match() -> None:
        matcher.decode(matcher.compare(features, batch), batch)

    match()  # What is compiled or set up once is no part of a match.
    seconds = min(time_once(match) for _ in range(rounds))
    return {
        "name": f"processor seconds of a match from features, model {name}",
        "size": f"batch {pairs}, {f'{fewest} to ' if fewest < most else ''}{most} keypoints",
        "ours": seconds,
        **({} if keypoints else {"required": BATCHES[pairs], "met": seconds <= BATCHES[pairs]}),
    }


def draw_features(layers: Sequence[str], objects: int, nodes: int) -> Features:
    """Random features of some layers of VGG16, with as many channels as it has there."""
    generator = torch.Generator().manual_seed(0)
    maps = {}
    for layer in layers:
        width = BLOCKS[int(layer[4]) - 1][-1]
        maps[layer] = torch.nn.functional.normalize(torch.rand(objects, nodes, width, generator=generator), dim=-1)
    return Features(maps, torch.zeros(objects, 512))
