"""Few keypoints in one picture, many in the other: percent right with the crop around them, and as `match` does it.

    python benchmarks/few_points.py --out results/few-points.json

Photo warps of the test photographs, strength 1, no box; the keypoints of the first view are one and its nearest ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from quadmatch.datasets.photo_pairs import list_photo_pairs
from quadmatch.datasets.picture import make_picture
from quadmatch.datasets.spans import compare_spans
from quadmatch.files import write_json
from quadmatch.machine import describe_origin
from quadmatch.models.load import load

COUNTS = (3, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=2, help="pairs of each photograph")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    matcher, rows = load(), {}
    for count in COUNTS:
        tight, best, total, warned = 0, 0, 0, 0
        pairs = list_photo_pairs(options.pairs, keypoints=12)
        for one in pairs:
            near = np.argsort(((one.points_a - one.points_a.mean(0)) ** 2).sum(1))[0]
            few = np.argsort(((one.points_a - one.points_a[near]) ** 2).sum(1))[:count]
            a = make_picture(one.picture_a, one.points_a[few], None, "image_a")
            b = make_picture(one.picture_b, one.points_b, None, "image_b")
            warned += compare_spans(a, b) is not None
            before = matcher.match_prepared(matcher.prepare([a, b]), [0], [1])[0]
            after = matcher.match_pictures([a, b], [0], [1])[0]
            tight += int((one.truth[few[before.pairs[:, 0]]] == before.pairs[:, 1]).sum())
            best += int((one.truth[few[after.pairs[:, 0]]] == after.pairs[:, 1]).sum())
            total += count
        percent = {"around_the_points": 100 * tight / total, "both_tried": 100 * best / total}
        rows[f"{count} against 12"] = {"pairs": len(pairs), "keypoints": total, "warned": warned, **percent}
        print(f"{count} against 12", rows[f"{count} against 12"], flush=True)
    command = f"python benchmarks/few_points.py --pairs {options.pairs}"
    if options.out:
        write_json(options.out, {**describe_origin(), "command": command, "seed": 0, "rows": rows})


if __name__ == "__main__":
    main()
