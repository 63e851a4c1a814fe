"""How far from the truth transferred landmarks are, beside what `match --detect 60` gives.

    python benchmarks/transfer.py --out results/transfer.json          # 4 minutes of processor time in bfloat16

Photo warps: the test photographs, which no setting has seen, with 12 landmarks and no box. Pascal VOC: pairs of the
validation split in their boxes; only pictures whose names have an even hash, as settings were chosen on the odd ones.
A landmark is right within a tenth of the box's longer side, or of the picture's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quadmatch.datasets.annotation import read_picture
from quadmatch.datasets.hashing import hash_text
from quadmatch.datasets.pairs import draw_test_pairs, pairs_hash
from quadmatch.datasets.photo_pairs import list_photo_pairs
from quadmatch.evaluation.trial import choose_data
from quadmatch.experiments.build import load_split
from quadmatch.files import write_json
from quadmatch.machine import describe_origin
from quadmatch.matcher import Matcher
from quadmatch.models.load import load
from quadmatch.own_images.corners import find_corners
from quadmatch.own_images.transfer import SURE, transfer

SHARE, CORNERS = 0.1, 60


class Case(NamedTuple):
    """Two pictures, landmarks of the first and where they are in the second."""

    kind: str
    image_a: np.ndarray
    points_a: np.ndarray
    box_a: Any
    image_b: np.ndarray
    truth: np.ndarray
    box_b: Any

    @property
    def unit(self) -> float:
        """The longer side of the box, or of the picture."""
        x0, y0, x1, y1 = self.box_b or (0, 0, *self.image_b.shape[1::-1])
        return float(max(x1 - x0, y1 - y0))


def list_warps(pairs: int, strengths: tuple[float, ...] = (1.0, 2.0)) -> Iterator[Case]:
    for strength in strengths:
        for one in list_photo_pairs(pairs, keypoints=12, strength=strength):
            right = one.points_b[one.truth]
            yield Case(
                f"photo warps, strength {strength:g}", one.picture_a, one.points_a, None, one.picture_b, right, None
            )


def list_voc(pairs: int) -> tuple[str, Iterator[Case]]:
    objects = load_split(choose_data("qcdgm-voc"), "validation")
    objects = [one for one in objects if hash_text("transfer", one.name) & 1 == 0]
    chosen = draw_test_pairs(objects, "intersection", pairs_per_class=pairs)

    def show() -> Iterator[Case]:
        for pair in chosen:
            a, b = objects[pair.source], objects[pair.target]
            both = [name for name in a.names if name in b.names]
            left, right = (one.points[[one.names.index(name) for name in both]] for one in (a, b))
            yield Case(f"VOC {pair.category}", read_picture(a), left, a.box, read_picture(b), right, b.box)

    return pairs_hash(chosen), show()


def measure(matcher: Matcher, case: Case) -> dict[str, np.ndarray]:
    """Distances to the truth as shares of the longer side; infinite where a landmark has no partner."""
    boxes = {"box_a": case.box_a, "box_b": case.box_b}
    found = transfer(matcher, case.image_a, case.points_a, case.image_b, **boxes)
    corners = find_corners(case.image_b, CORNERS, case.box_b)
    match = matcher.match(case.image_a, case.points_a, case.image_b, corners, partial=True, **boxes)
    detected = np.full_like(case.truth, np.inf)
    detected[match.pairs[:, 0]] = corners[match.pairs[:, 1]]
    ours, theirs = (np.linalg.norm(points - case.truth, axis=1) / case.unit for points in (found.points, detected))
    return {"transfer": ours, "detect": theirs, "sure": ~found.unsure}


def summarise(rows: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    ours, theirs, sure = (np.concatenate([row[key] for row in rows]) for key in ("transfer", "detect", "sure"))
    right = ours <= SHARE
    return {
        "pairs": len(rows),
        "landmarks": len(ours),
        "transfer_percent": 100 * float(right.mean()),
        "detect_percent": 100 * float((theirs <= SHARE).mean()),
        "transfer_median": float(np.median(ours)),
        "detect_median": float(np.median(theirs)) if np.isfinite(np.median(theirs)) else None,
        "sure": int(sure.sum()),
        "sure_percent": 100 * float(right[sure].mean()) if sure.any() else None,
        "unsure_percent": 100 * float(right[~sure].mean()) if not sure.all() else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warps", type=int, default=3, help="pairs of each photograph, 0 for none")
    parser.add_argument("--voc", type=int, default=10, help="pairs of each class of Pascal VOC, 0 for none")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    matcher, began = load(), time.process_time()
    found: dict[str, list[dict[str, np.ndarray]]] = {}
    hashed, voc = list_voc(options.voc) if options.voc else (None, iter(()))
    for cases in (list_warps(options.warps), voc):
        for case in cases:
            found.setdefault(case.kind, []).append(measure(matcher, case))
            print(case.kind, len(found[case.kind]), flush=True)
    rows = {kind: summarise(members) for kind, members in found.items()}
    if options.voc:
        classes = [members for kind, members in found.items() if kind.startswith("VOC")]
        rows["VOC, all classes"] = summarise([one for members in classes for one in members])
    command = f"python benchmarks/transfer.py --warps {options.warps} --voc {options.voc}"
    ways = {"model": "default", "precision": str(matcher.features.precision), "corners": CORNERS, "sure": SURE}
    origin = {**describe_origin(), "command": command, "seed": 0, "within": SHARE, "list": hashed, **ways}
    report = origin | {"processor_seconds": round(time.process_time() - began), "rows": rows}
    for kind, row in rows.items():
        print(kind, {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()})
    if options.out:
        write_json(options.out, report)


if __name__ == "__main__":
    main()
