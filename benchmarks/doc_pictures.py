"""The pictures of the documentation that show what the shipped models do: made again when a model changes.

    python benchmarks/doc_pictures.py

Writes `constraint.jpg`, `models.jpg` and `detected.jpg` into `docs/images` and says what each shows, for the sentences
beside them. The photographs are scikit-image's, warped as the demo warps them; of each kind the pair that shows most.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

import quadmatch as qm
from quadmatch.bench.walls import list_wall_pairs
from quadmatch.datasets.photo_pairs import PicturePair, list_photo_pairs
from quadmatch.demo.photographs import PAIRS, STRENGTH, match_both_ways
from quadmatch.drawing.panels import WIDTH
from quadmatch.own_images.corners import find_corners
from quadmatch.result import MatchResult

WIDE, GENTLE, DETECTED, NEAR = 1200, 1.0, 25, 8.0
"""Pixels of a picture; strength of the warp, points and pixels within which one is right, where they are detected."""
TURN = 60.0
"""Degrees between two views of the corner of a house."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    out = parser.parse_args().out
    default = qm.load()
    pairs = list_photo_pairs(PAIRS, strength=STRENGTH)
    # With nothing trained, the difference is the constraint's and nobody else's.
    constrained, free = match_both_ways(qm.load("vgg16"), pairs)
    show(out / "constraint.jpg", pairs, {"without the constraint": free, "with the constraint": constrained})
    turned = list_wall_pairs(TURN)
    learned, whole = (match_both_ways(one, turned)[0] for one in (qm.load("qcattention-voc"), default))
    ways = {"qcattention-voc alone": learned, "default, with local maps": whole}
    show(out / "models.jpg", turned, ways)
    detect(out / "detected.jpg", default)


def show(path: Path, pairs: Sequence[PicturePair], ways: dict[str, list[MatchResult]]) -> None:
    """The pair of which the second way has most points more right than the first, one way above the other."""
    right = [[pair.count_right(np.asarray(own.pairs)) for pair, own in zip(pairs, found)] for found in ways.values()]
    chosen = int(np.argmax(np.subtract(right[1], right[0])))
    pair, parts = pairs[chosen], []
    for (name, found), own in zip(ways.items(), right):
        title = f"{name}: {own[chosen]} of {len(pair.truth)} right"
        parts.append(draw(pair, found[chosen], truth=pair.truth, title=title))
        print(f"{path.name}: {pair.name}, {title}")
    height = max(part.height for part in parts)
    both = Image.new("RGB", (WIDE, height * len(parts)), "white")
    for number, part in enumerate(parts):
        both.paste(part, (0, number * height))
    both.save(path, quality=88)


def draw(pair: PicturePair, result: MatchResult, **options: object) -> Image.Image:
    """A match as pixels, as wide as the documentation's pictures are."""
    options = {"points_a": pair.points_a, "points_b": pair.points_b, "labels": False, "legend": False} | options
    figure = result.plot(image_a=pair.picture_a, image_b=pair.picture_b, **options)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=2 * WIDE / WIDTH)
    picture = Image.open(buffer).convert("RGB")
    return picture.resize((WIDE, round(WIDE * picture.height / picture.width)), Image.Resampling.LANCZOS)


def detect(path: Path, matcher: qm.Matcher) -> None:
    """A cup in two views with detected points, some of which are matched."""
    pair = next(one for one in list_photo_pairs(PAIRS, strength=GENTLE) if one.photograph == "coffee")
    a, b = find_corners(pair.picture_a, DETECTED), find_corners(pair.picture_b, DETECTED)
    result = matcher.match(pair.picture_a, a, pair.picture_b, b, partial=True)
    assert isinstance(result, MatchResult)
    first, second = np.asarray(result.pairs).T
    right = int((np.linalg.norm(pair.follow(a[first]) - b[second], axis=1) <= NEAR).sum())
    print(f"{path.name}: {len(a)} and {len(b)} points, {len(first)} matched, {right} of them right")
    draw(pair, result, points_a=a, points_b=b, labels=True, legend=True).save(path, quality=88)


if __name__ == "__main__":
    main()
