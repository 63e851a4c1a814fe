"""What a mirror at test time is worth, and several networks that decide together, on Pascal VOC's validation split.

    python benchmarks/together.py --mirror DIR --model qcattention-voc --model runs/other --out results/together.json

Each pair is matched as it is and with both pictures in a mirror; what a node's partner is does not change by that. The
mean of the soft assignments decides. Rows are each model alone and with the mirror, then all models together. Nothing
is trained here, and no constant is chosen. On the same pairs, each row is set against the first.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from quadmatch.datasets import DATASETS, Annotation
from quadmatch.datasets.pairs import PairIndex
from quadmatch.datasets.protocols import add_outliers
from quadmatch.evaluation.evaluate import choose_pairs, compare_pairs, summarise
from quadmatch.evaluation.report import Conditions, Counts, Evaluation, count_matches
from quadmatch.files import write_json
from quadmatch.graph import PairBatch
from quadmatch.machine import describe_origin
from quadmatch.matching import Matching
from quadmatch.models.load import TRAINED, load
from quadmatch.reproduce.paired import compare_rows
from quadmatch.solvers.linear.hungarian import hungarian

Said = list[tuple[str, PairBatch, torch.Tensor]]
"""Class, pairs and soft assignments of each batch."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", help="a model or the folder of a run; may be repeated")
    parser.add_argument("--mirror", help="folder of the archives of Pascal VOC")
    parser.add_argument("--pairs", type=int, default=100, help="pairs of each class")
    parser.add_argument("--outliers", type=int, default=0, help="points that match nothing, in each graph")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.mirror:
        os.environ["QUADMATCH_MIRROR"] = options.mirror
    models = options.model or [TRAINED]
    conditions = Conditions(split="validation", pairs=options.pairs, outliers=options.outliers)
    objects = DATASETS["pascal-voc"](None, conditions.split)
    if options.outliers:
        objects = add_outliers(objects, options.outliers, "uniform")
    reflected = [replace(one, mirrored=True) for one in objects]
    chosen = choose_pairs(objects, conditions)
    shown = [[ask(model, own, chosen) for own in (objects, reflected)] for model in models]
    ways = {Path(model).name: [straight] for model, (straight, _) in zip(models, shown)}
    ways |= {f"{Path(model).name}, mirror": both for model, both in zip(models, shown)}
    if len(models) > 1:
        ways |= {"all": [straight for straight, _ in shown], "all, mirror": [one for both in shown for one in both]}
    found = {name: judge(parts, objects, conditions) for name, parts in ways.items()}
    by_pair = {name: {"by_pair": one.list_pairs()} for name, one in found.items()}
    first = next(iter(found))
    rows: dict[str, dict[str, object]] = {}
    for name, one in found.items():
        against = asdict(compare_rows([by_pair[name]], [by_pair[first]])) if name != first else None
        rows[name] = {"accuracy": round(one.mean.accuracy, 3), "pair_mean": round(one.mean.accuracy_pairs, 3)}
        rows[name] |= {} if against is None else {"against": {first: against}}
        print(f"{name}: {one.mean.accuracy:.2f}", flush=True)
    if options.out:
        words = " ".join(f"--model {Path(model).name}" for model in models)
        command = f"python benchmarks/together.py {words} --pairs {options.pairs} --outliers {options.outliers}"
        write_json(options.out, {"command": command, "seed": 0, **describe_origin(), "rows": rows})


@torch.inference_mode()
def ask(model: str, objects: Sequence[Annotation], chosen: Sequence[PairIndex]) -> Said:
    """What a model says of the chosen pairs of these objects."""

    def settle(matching: Matching) -> torch.Tensor:
        return matching.settle(partial=False).assignment

    matcher = load(model)
    said = compare_pairs(matcher, objects, chosen, "intersection")
    return [(category, batch, settle(matching)) for category, batch, matching in said]


def judge(parts: Sequence[Said], objects: Sequence[Annotation], conditions: Conditions) -> Evaluation:
    """How many matches are right where the mean of several assignments decides."""
    counts: dict[str, list[Counts]] = {}
    for same in zip(*parts):
        category, batch, _ = same[0]
        mean = torch.stack([assignment for _, _, assignment in same]).mean(0)
        found = hungarian(mean, batch.pairs.mask)
        counts.setdefault(category, []).append(count_matches(found, batch.pairs.truth))
    joined = {name: Counts(*(torch.cat(one) for one in zip(*own))) for name, own in counts.items()}
    return summarise(joined, objects, conditions, "")


if __name__ == "__main__":
    main()
