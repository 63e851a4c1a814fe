"""The constants of the default model's consensus, tried one at a time on pictures that are no test.

    QUADMATCH_PRECISION=bfloat16,channels_last,1 python benchmarks/choose_default.py --mirror DIR

Warped training photographs and corners of houses made of them, pairs of Pascal VOC's validation split, and Willow's
training cars and motorbikes, as they are and with points half-way between their keypoints ("dense"); each of them also
with points that match nothing. The network runs once for each picture;
then each change of a constant takes seconds. `--model` is the trained half, a model or the folder of a run; the first
row is what it does alone. Without a data set of Pascal VOC, give `--pairs 0`. `--only` tries nothing but what is there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import quadmatch.layers.local_maps as local_maps
import quadmatch.methods.bending as bending
import quadmatch.methods.consensus as consensus
from quadmatch.bench.walls import list_wall_pairs
from quadmatch.datasets import DATASETS, Annotation
from quadmatch.datasets.between import add_between
from quadmatch.datasets.photo_pairs import PicturePair, list_photo_pairs, list_pictures
from quadmatch.datasets.protocols import add_outliers
from quadmatch.evaluation.evaluate import choose_pairs, compare_pairs
from quadmatch.evaluation.report import Conditions
from quadmatch.features.prepared import pair_up
from quadmatch.files import write_json
from quadmatch.graph import GraphPair, PairBatch
from quadmatch.machine import describe_origin
from quadmatch.matcher import Matcher
from quadmatch.matching import Features, Matching
from quadmatch.models.load import TRAINED, build_default

OUTLIERS = 10
TRIED: dict[str, Sequence[Any]] = {
    "SHARE": (0.15, 0.25, 0.4),
    "EVEN": (0.4, 0.5, 0.6),
    "NEAR": (25.0, 40.0, 60.0),
    "NODES": (8, 12, 16),
    "LEAST": ((-3.0, -12.0), (-6.0, -12.0), (-4.0, -9.0)),
    "CHANCE": (-3.0, -2.0, -1.0),
    "CERTAIN": (2.0, 2.5, 3.0),
    "WEIGHT": (0.02, 0.05, 0.1),
}


class Recorded(torch.nn.Module):
    """The trained half, which says again what it said, so that only the consensus is computed anew."""

    def __init__(self, head: torch.nn.Module) -> None:
        super().__init__()
        self.head = head
        self.known: dict[int, Matching] = {}

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        if id(pair) not in self.known:
            self.known[id(pair)] = self.head(pair, source, target)
        return self.known[id(pair)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=TRAINED, help="the trained half")
    parser.add_argument("--mirror", help="folder of the archives of Pascal VOC")
    parser.add_argument("--pairs", type=int, default=15, help="pairs of each class of Pascal VOC")
    parser.add_argument("--draws", type=int, default=1, help="pairs of each photograph and corner")
    parser.add_argument("--only", action="store_true", help="no constant is changed")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.mirror:
        os.environ["QUADMATCH_MIRROR"] = options.mirror
    matcher = build_default(trained=options.model)
    matcher.head.head = Recorded(matcher.head.head)
    sets = gather(matcher, options.draws, options.pairs)
    whole, decoding = matcher.head, matcher.decoding
    matcher.head, matcher.decoding = whole.head, {"weight": 0.0}
    rows = {"trained half alone": try_all(matcher, sets)}
    matcher.head, matcher.decoding = whole, decoding
    rows["as it is"] = try_all(matcher, sets)
    for name, row in rows.items():
        print(name, row, flush=True)
    for name, values in () if options.only else TRIED.items():
        place = next(one for one in (consensus, bending, local_maps) if hasattr(one, name))
        usual = getattr(place, name)
        for value in values:
            if value != usual:
                setattr(place, name, value)
                matcher.decoding = {"weight": consensus.WEIGHT}
                rows[f"{name} = {value}"] = try_all(matcher, sets)
                print(f"{name} = {value}", rows[f"{name} = {value}"], flush=True)
        setattr(place, name, usual)
        matcher.decoding = decoding
    if options.out:
        command = f"python benchmarks/choose_default.py --model {options.model} --pairs {options.pairs}"
        command += f" --draws {options.draws}" + (" --only" if options.only else "")
        write_json(options.out, {**describe_origin(), "command": command, "seed": 0, "rows": rows})


@torch.no_grad()
def gather(matcher: Matcher, draws: int, pairs: int) -> dict[str, list[tuple[Features, PairBatch]]]:
    """Features and pairs of each set; the convolutions run here and never again."""
    drawn: dict[str, Sequence[PicturePair]] = {
        f"warps {one:g}": list_photo_pairs(draws, strength=one, split="train") for one in (1.5, 2)
    }
    for turn in (40.0, 60.0):
        drawn[f"corner {turn:g}°"] = list_wall_pairs(turn, split="train", draws=draws)
    found = {}
    for name, own in drawn.items():
        found[name] = list(photograph(matcher, own))
        found[f"{name}, {OUTLIERS} outliers"] = list(photograph(matcher, [scatter(pair) for pair in own]))
    if pairs:
        kinds = {"voc": ("pascal-voc", "validation", None), "cars": ("willow", "trainval", {"Car", "Motorbike"})}
        for name, (dataset, split, only) in kinds.items():
            objects = [one for one in DATASETS[dataset](None, split) if only is None or one.category in only]
            number = pairs if only is None else 10 * pairs
            shown = {name: objects} if only is None else {name: objects, f"dense {name}": add_between(objects)}
            for title, seen in shown.items():
                found[title] = list(look_up(matcher, seen, split, number))
                found[f"{title}, {OUTLIERS} outliers"] = list(
                    look_up(matcher, add_outliers(seen, OUTLIERS, "uniform"), split, number)
                )
    return found


def scatter(pair: PicturePair) -> PicturePair:
    """The pair with points that match nothing after the others, anywhere between them."""
    rng = np.random.default_rng(len(pair.truth))
    sides = [
        np.concatenate([own, rng.uniform(own.min(0), own.max(0), (OUTLIERS, 2))])
        for own in (pair.points_a, pair.points_b)
    ]
    return replace(pair, points_a=sides[0], points_b=sides[1])


def photograph(matcher: Matcher, pairs: Sequence[PicturePair]) -> Iterator[tuple[Features, PairBatch]]:
    pictures, source, target = list_pictures(pairs)
    left = iter(pairs)
    for stored, batch in pair_up(matcher.prepare(pictures), source, target):
        for truth in batch.pairs.truth:
            own = torch.from_numpy(next(left).truth)
            truth[torch.arange(len(own)), own] = True
        yield matcher.features(*stored), batch


def look_up(
    matcher: Matcher, annotations: Sequence[Annotation], split: str, pairs: int
) -> Iterator[tuple[Features, PairBatch]]:
    """Pairs of the objects of a data set, as an evaluation sees them."""
    seen = []
    compare = matcher.compare

    def record(features: Features, batch: PairBatch) -> Matching:
        seen.append((features, batch))
        return compare(features, batch)

    matcher.compare = record  # type: ignore[method-assign]
    chosen = choose_pairs(annotations, Conditions(split=split, pairs=pairs))
    for _ in compare_pairs(matcher, annotations, chosen, "intersection"):
        pass
    matcher.compare = compare  # type: ignore[method-assign]
    yield from seen


@torch.no_grad()
def try_all(matcher: Matcher, sets: dict[str, list[tuple[Features, PairBatch]]]) -> dict[str, float]:
    """Percent right of each set, with the constants as they are now."""
    shares = {}
    for name, batches in sets.items():
        right = total = 0
        for features, batch in batches:
            found = matcher.decode(matcher.compare(features, batch), batch).assignment > 0.5
            right, total = right + int((found & batch.pairs.truth).sum()), total + int(batch.pairs.truth.sum())
        shares[name] = round(100 * right / max(total, 1), 2)
    return shares


if __name__ == "__main__":
    main()
