"""What categories that training never saw gain or lose by changes of the training, on Pascal VOC's validation split.

    python benchmarks/leave_out.py --mirror DIR --out results/unseen-tried.json \\
        --row "300 steps" training.steps=300 training.average_decay=0.99

`reproduce beyond-unseen` leaves out one category at a time, in twenty trainings. Here five are left out at a time, so
that four trainings tell of all twenty: the network of each is tested on the five that it never saw. The first row is
the budget of `beyond-unseen`, with outliers and without mirrored pictures, as in its record; every `--row` is a name
and what it changes of that. On the same pairs, each row is set against the first. Runs stay in `--runs`, and those
that are there are used again.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from quadmatch.evaluation.report import Conditions
from quadmatch.files import write_json
from quadmatch.machine import describe_origin
from quadmatch.reproduce.beyond import EXPERIMENT
from quadmatch.reproduce.items import Row, Settings
from quadmatch.reproduce.paired import compare_rows
from quadmatch.reproduce.reuse import evaluate_row
from quadmatch.reproduce.unseen import BUDGET, CATEGORIES, PAIRS

PARTS = 4
COMMON = (*BUDGET, "training.flip=false", "training.outliers=12", "training.between=1e-12")
"""Of all rows. So few steps that there is none have points between keypoints: rows that have and rows that have not
find the same features, which are computed once."""
FIRST = "100 steps"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirror", help="folder of the archives of Pascal VOC")
    parser.add_argument("--row", nargs="+", action="append", default=[], metavar="NAME KEY=VALUE", help="a change")
    parser.add_argument("--runs", type=Path, default=Path("results"), help="folder in whose folder `runs` they are")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.mirror:
        os.environ["QUADMATCH_MIRROR"] = options.mirror
    settings = Settings(options.runs, changes=(f"training.threads={options.threads}",))
    rows: dict[str, dict[str, Any]] = {}
    pairs: dict[str, dict[str, Any]] = {}
    for name, *changes in [[FIRST], *options.row]:
        rows[name], pairs[name] = leave_out(changes, settings)
        if name != FIRST:
            rows[name]["against"] = {FIRST: asdict(compare_rows([pairs[name]], [pairs[FIRST]]))}
        print(f"{name}: {rows[name]['mean']:.2f}", flush=True)
        if options.out:
            about = {"seed": 0, "pairs": PAIRS, "changes": list(COMMON)}
            write_json(options.out, describe_origin() | about | {"rows": rows})


def leave_out(changes: Sequence[str], settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Accuracy on all categories, each by a network that never saw it; and the right matches of every pair."""
    conditions = Conditions(split="validation", pairs=PAIRS)
    found: dict[str, float] = {}
    by_pair: dict[str, Any] = {}
    for part in range(PARTS):
        left = CATEGORIES[part::PARTS]
        row = Row(EXPERIMENT, changes=(*COMMON, *changes, f"data.options={{without={json.dumps(left)}}}"))
        only = {"only": left, "without": ()}
        evaluation = evaluate_row(row, 0, "pascal-voc", conditions, settings, only, by_pair=True)
        found |= {name: round(one["accuracy"], 3) for name, one in evaluation["classes"].items()}
        by_pair |= evaluation["by_pair"]
    return {"changes": list(changes), "mean": round(fmean(found.values()), 3), "classes": found}, {"by_pair": by_pair}


if __name__ == "__main__":
    main()
