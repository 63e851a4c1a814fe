"""Keypoints of one picture as a file that `read_keypoints` and other programs read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from quadmatch.datasets.keypoints import Keypoints
from quadmatch.datasets.tps import write_tps

WRITTEN = (".csv", ".json", ".tps")


def check_form(path: str | Path) -> None:
    """Refuse the name of a file whose form cannot be written."""
    if Path(path).suffix.lower() not in WRITTEN:
        raise ValueError(f"{path}: points are written as {', '.join(WRITTEN)}")


def write_keypoints(
    keypoints: Keypoints, suffix: str, image: str, height: int, scores: Sequence[float] | None = None
) -> str:
    """The text of a file with this end of its name; a column or list of scores, where the form has room for it."""
    names = [keypoints.name_all()[place] for place in keypoints.indices]
    points = [[round(x, 3), round(y, 3)] for x, y in keypoints.points.tolist()]
    if suffix.lower() == ".tps":
        return write_tps(keypoints, image, height)
    if suffix.lower() == ".csv":
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["name", "x", "y", *(["score"] if scores is not None else [])])
        rows.writerows(
            [name, *point, *([scores[row]] if scores is not None else [])]
            for row, (name, point) in enumerate(zip(names, points))
        )
        return text.getvalue()
    content: dict[str, object] = {"image": image, "points": points, "names": names}
    if scores is not None:
        content["scores"] = list(scores)
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
