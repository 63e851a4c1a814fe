"""Photographs matched with a model, with and without the constraint, and beside SIFT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quadmatch.demo.photo_pairs import PhotoPair, PicturePair, list_photo_pairs, measure
from quadmatch.demo.sift import match_sift
from quadmatch.matcher import Matcher
from quadmatch.result import MatchResult
from quadmatch.subjects import pair_requests

NEAR = 3.0
"""Pixels within which a detected point has come back."""
DETECTED = 40
STRENGTH = 1.0
PAIRS = 4

Say = Callable[[str], object]


def show_photographs(out: Path, matcher: Matcher, model: str, say: Say = print) -> dict[str, Any]:
    """Match the fixed list of warped photographs, draw one pair of each, and return what the report shows."""
    pairs = list_photo_pairs(PAIRS, strength=STRENGTH)
    points = sum(len(pair.truth) for pair in pairs)
    say(f"{len(pairs)} pairs of warped photographs with known truth, {points} points in all; model {model}.")
    constrained, free = match_both_ways(matcher, pairs)
    ways = {
        f"{model}, with the quadratic constraint": constrained,
        f"{model}, without it": free,
        "SIFT descriptors at the same points": [_match_sift(pair) for pair in pairs],
    }
    shares = {name: measure(pairs, results) for name, results in ways.items()}
    for name, share in shares.items():
        say(f"  {name}: {share:.1f} % right")
    pictures = _draw(out, pairs, ways)
    detected = detect_and_match(matcher, pairs)
    say(
        f"  {DETECTED} points detected in each picture instead: precision {detected['precision']:.1f} %, "
        f"recall {detected['recall']:.1f} % of the {detected['true']} that come back within {NEAR:.0f} pixels"
    )
    return {"model": model, "pairs": len(pairs), "points": points, "right": shares} | {
        "detected": detected,
        "pictures": pictures,
    }


def match_both_ways(
    matcher: Matcher, pairs: Sequence[PicturePair]
) -> tuple[list[MatchResult], list[MatchResult]]:
    """Every pair with its given points, with and without the constraint; each picture is seen once."""
    requests, source, target = pair_requests(
        [pair.picture_a for pair in pairs],
        [pair.points_a for pair in pairs],
        [pair.picture_b for pair in pairs],
        [pair.points_b for pair in pairs],
        None,
        None,
    )
    subjects = matcher.prepare(requests)
    return (
        matcher.match_subjects(subjects, source, target),
        matcher.match_subjects(subjects, source, target, constraint=False),
    )


def _match_sift(pair: PicturePair) -> MatchResult:
    return match_sift(pair.picture_a, pair.points_a, pair.picture_b, pair.points_b)


def detect_and_match(matcher: Matcher, pairs: Sequence[PhotoPair]) -> dict[str, float]:
    """Precision and recall where points are found in both pictures, of which only some come back."""
    from quadmatch.detection import find_corners

    found = [
        (find_corners(pair.picture_a, DETECTED), find_corners(pair.picture_b, DETECTED)) for pair in pairs
    ]
    results = matcher.match(
        [pair.picture_a for pair in pairs],
        [a for a, _ in found],
        [pair.picture_b for pair in pairs],
        [b for _, b in found],
        partial=True,
    )
    assert isinstance(results, list)
    right = proposed = true = 0
    for pair, (a, b), result in zip(pairs, found, results):
        near = np.linalg.norm(pair.follow(a)[:, None] - b, axis=-1) <= NEAR
        chosen = np.asarray(result.pairs)
        right += int(near[chosen[:, 0], chosen[:, 1]].sum())
        proposed += len(chosen)
        true += count_pairs(near)
    return {
        "precision": 100 * right / max(proposed, 1),
        "recall": 100 * right / max(true, 1),
        "true": true,
        "proposed": proposed,
    }


def count_pairs(near: np.ndarray) -> int:
    """How many pairs of points lie near each other, each point in one pair."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-near.astype(float))
    return int(near[rows, columns].sum())


def _draw(
    out: Path, pairs: Sequence[PhotoPair], ways: dict[str, list[MatchResult]]
) -> list[dict[str, str | int]]:
    """The first pair of each photograph, matched each way."""
    pictures: list[dict[str, str | int]] = []
    for place in range(0, len(pairs), PAIRS):
        pair = pairs[place]
        for number, (name, results) in enumerate(ways.items()):
            result = results[place]
            right = pair.count_right(np.asarray(result.pairs))
            file = f"{pair.photograph}-{number + 1}.png"
            result.plot(
                pair.points_a,
                pair.points_b,
                image_a=pair.picture_a,
                image_b=pair.picture_b,
                truth=pair.truth,
                title=f"{name}: {right} of {len(pair.truth)} right",
                path=out / file,
            )
            shown: dict[str, str | int] = {"photograph": pair.photograph, "way": name, "file": file}
            pictures.append(shown | {"right": right, "points": len(pair.truth)})
    return pictures
