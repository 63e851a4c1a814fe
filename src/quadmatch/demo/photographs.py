"""Photographs matched with a model, with and without the constraint, and beside SIFT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from quadmatch.datasets.photo_pairs import PhotoPair, PicturePair, list_photo_pairs, list_pictures, measure
from quadmatch.demo.sift import match_sift
from quadmatch.matcher import Matcher
from quadmatch.result import MatchResult

NEAR = 3.0
"""Pixels within which a detected point has come back."""
DETECTED = 40
STRENGTH = 2.0
"""Of the warps: hard enough that what points look like does not suffice."""
PAIRS = 4

Say = Callable[[str], object]
Points = Float[np.ndarray, "K 2"]


def show_photographs(out: Path, matcher: Matcher, model: str, say: Say = print) -> dict[str, Any]:
    """Match the fixed list of warped photographs, draw a pair of each, and return what the report shows."""
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
    shown = choose_shown(pairs, constrained, free)
    pictures = _draw(out, pairs, shown, dict(list(ways.items())[:2]))
    detected = detect_and_match(matcher, pairs)
    say(
        f"  {DETECTED} points detected in each picture instead: precision {detected['precision']:.1f} %, "
        f"recall {detected['recall']:.1f} % of the {detected['true']} that come back within {NEAR:.0f} pixels"
    )
    return {"model": model, "pairs": len(pairs), "points": points, "right": shares} | {
        "detected": detected,
        "pictures": pictures,
    }


def match_both_ways(matcher: Matcher, pairs: Sequence[PicturePair]) -> tuple[list[MatchResult], list[MatchResult]]:
    """Every pair with its given points, with and without the constraint; each picture is seen once."""
    pictures, source, target = list_pictures(pairs)
    constrained, free = matcher.match_ways(matcher.prepare(pictures), source, target)
    return constrained, free


def _match_sift(pair: PicturePair) -> MatchResult:
    return match_sift(pair.picture_a, pair.points_a, pair.picture_b, pair.points_b)


def detect_and_match(matcher: Matcher, pairs: Sequence[PhotoPair]) -> dict[str, float]:
    """Precision and recall where points are found in both pictures, of which only some come back."""
    found, results = match_corners(matcher, pairs, pairs)
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


def match_corners(
    matcher: Matcher, pairs: Sequence[PhotoPair], others: Sequence[PhotoPair]
) -> tuple[list[tuple[Points, Points]], list[MatchResult]]:
    """Corners of the first picture of each pair and of the second one of each other, and which of them match."""
    from quadmatch.own_images.corners import find_corners

    found = [(find_corners(a.picture_a, DETECTED), find_corners(b.picture_b, DETECTED)) for a, b in zip(pairs, others)]
    results = matcher.match(
        [pair.picture_a for pair in pairs],
        [a for a, _ in found],
        [pair.picture_b for pair in others],
        [b for _, b in found],
        partial=True,
    )
    assert isinstance(results, list)
    return found, results


def count_pairs(near: np.ndarray) -> int:
    """How many pairs of points lie near each other, each point in one pair."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-near.astype(float))
    return int(near[rows, columns].sum())


def choose_shown(
    pairs: Sequence[PhotoPair], constrained: Sequence[MatchResult], free: Sequence[MatchResult]
) -> list[int]:
    """Of each photograph the pair in which the constraint changes most, to better or worse."""
    changes: dict[str, dict[int, int]] = {}
    for place, (pair, *ways) in enumerate(zip(pairs, constrained, free, strict=True)):
        right, before = (pair.count_right(np.asarray(result.pairs)) for result in ways)
        changes.setdefault(pair.photograph, {})[place] = abs(right - before)
    return [max(found, key=found.__getitem__) for found in changes.values()]


def _draw(
    out: Path, pairs: Sequence[PhotoPair], shown: Sequence[int], ways: dict[str, list[MatchResult]]
) -> list[dict[str, str | int]]:
    """Some pairs, matched each way; what a picture shows is said on the page, where it can be read."""
    pictures: list[dict[str, str | int]] = []
    for place in shown:
        pair = pairs[place]
        for number, (name, results) in enumerate(ways.items()):
            file = f"{pair.photograph}-{number + 1}.png"
            results[place].plot(
                pair.points_a,
                pair.points_b,
                image_a=pair.picture_a,
                image_b=pair.picture_b,
                truth=pair.truth,
                labels=False,
                legend=False,
                title="",
                path=out / file,
            )
            right = pair.count_right(np.asarray(results[place].pairs))
            drawn: dict[str, str | int] = {"photograph": pair.photograph, "way": name, "file": file}
            pictures.append(drawn | {"right": right, "points": len(pair.truth)})
    return pictures
