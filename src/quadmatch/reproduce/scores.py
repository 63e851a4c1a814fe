"""What a score is worth: of the pairs with a score in some range, how many are right."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from quadmatch.reproduce.items import Figure, Output, Settings

if TYPE_CHECKING:
    from quadmatch.matcher import Matcher
    from quadmatch.result import MatchResult

EDGES = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Ends of the ranges of scores."""
NEAR = 8.0
"""Pixels of 384 within which a corner is at the right place."""
OBJECT_PAIRS, PHOTO_PAIRS = 10, 3
"""Pairs of each class of Pascal VOC, and of each photograph."""
FEW = 30
"""Pairs that a range needs for a percentage."""

Scored = tuple[Float[np.ndarray, " P"], Bool[np.ndarray, " P"]]


def make_scores(settings: Settings) -> Output:
    """The default model on pictures of one kind, of one thing, and of two things that have nothing in common."""
    from quadmatch.demo.photographs import DETECTED
    from quadmatch.models.load import DEFAULT
    from quadmatch.reproduce.reuse import hash_model

    uses = {
        "same kind, all keypoints, all matched": score_objects,
        "same thing, detected points": score_views,
        "nothing in common, detected points": score_strangers,
    }
    parameters = hash_model(DEFAULT)
    steps = settings.follow(list(uses), lambda name: name)
    counts = {name: count_once(name, uses[name], parameters, settings) for name in steps}
    return Output(
        title="Pairs that are right, by their score",
        caption=f"model {DEFAULT}; percent right (pairs); photographs of scikit-image's train and validation part, "
        f"{DETECTED} corners each, partial, right within {NEAR:.0f} of 384 pixels; Pascal VOC validation, unfiltered",
        lines=list_shares(counts),
        record={"model": DEFAULT, "parameters": parameters, "edges": EDGES, "counts": counts},
        picture=draw_shares(counts),
    )


def count_once(
    name: str, score: Callable[[Matcher, Settings], Scored], parameters: str, settings: Settings
) -> list[tuple[int, int]]:
    """Pairs and right pairs in each range of scores, made or read: what was killed goes on."""
    from quadmatch.demo.photographs import DETECTED
    from quadmatch.files import write_json
    from quadmatch.models.load import DEFAULT, load

    numbers = EDGES, DETECTED, NEAR, OBJECT_PAIRS, PHOTO_PAIRS, settings.quick, settings.split
    digest = hashlib.sha256(repr((name, parameters, numbers)).encode()).hexdigest()[:16]
    path = settings.out / DEFAULT / "scores" / f"{digest}.json"
    if not path.is_file():
        found = count_by_score(*score(load(DEFAULT), settings))
        write_json(path, {"use": name, "counts": found}, make_folder=True)
    return [(pairs, right) for pairs, right in json.loads(path.read_text(encoding="utf-8"))["counts"]]


def score_objects(matcher: Matcher, settings: Settings) -> Scored:
    """Pairs of objects of one class of Pascal VOC's validation split, every keypoint matched."""
    from quadmatch.datasets.pairs import draw_test_pairs
    from quadmatch.datasets.pascal_voc import pascal_voc
    from quadmatch.datasets.picture import make_picture

    objects = pascal_voc(settings.root, settings.split or "validation")
    chosen = draw_test_pairs(objects, "unfiltered", pairs_per_class=5 if settings.quick else OBJECT_PAIRS)
    used = sorted({place for pair in chosen for place in (pair.source, pair.target)})
    rows = {place: row for row, place in enumerate(used)}
    pictures = [make_picture(one.image, one.points, one.box, one.name) for one in (objects[place] for place in used)]
    source, target = ([rows[getattr(pair, side)] for pair in chosen] for side in ("source", "target"))
    results = matcher.match_prepared(matcher.prepare(pictures), source, target)
    right = [
        [objects[pair.source].names[i] == objects[pair.target].names[j] for i, j in result.pairs]
        for pair, result in zip(chosen, results)
    ]
    return join_scores(results, right)


def score_views(matcher: Matcher, settings: Settings) -> Scored:
    """Two bent views of one photograph, corners detected in each."""
    return _match_detected(matcher, settings, strangers=False)


def score_strangers(matcher: Matcher, settings: Settings) -> Scored:
    """Views of two different photographs: no pair is right."""
    return _match_detected(matcher, settings, strangers=True)


def _match_detected(matcher: Matcher, settings: Settings, *, strangers: bool) -> Scored:
    from quadmatch.datasets.photo_pairs import list_photo_pairs
    from quadmatch.demo.photographs import match_corners

    count = 1 if settings.quick else PHOTO_PAIRS
    pairs = [pair for split in ("train", "validation") for pair in list_photo_pairs(count, split=split)]
    # The next photograph in a circle is another one.
    others = pairs[count:] + pairs[:count] if strangers else pairs
    found, results = match_corners(matcher, pairs, others)
    right = []
    for pair, (a, b), result in zip(pairs, found, results):
        i, j = np.asarray(result.pairs).T
        distance = np.linalg.norm(pair.follow(a)[i] - b[j], axis=-1)
        right.append((distance <= NEAR) & (not strangers))
    return join_scores(results, right)


def join_scores(results: list[MatchResult], right: list[Any]) -> Scored:
    """Scores of all pairs of all results, and which of them are right."""
    scores = np.concatenate([np.asarray(result.scores, dtype=np.float64) for result in results])
    return scores, np.concatenate([np.asarray(one, dtype=bool) for one in right])


def count_by_score(scores: Float[np.ndarray, " P"], right: Bool[np.ndarray, " P"]) -> list[tuple[int, int]]:
    """How many pairs have a score in each range, and how many of them are right."""
    rows = np.clip(np.digitize(scores, EDGES) - 1, 0, len(EDGES) - 2)
    return [(int((rows == row).sum()), int(right[rows == row].sum())) for row in range(len(EDGES) - 1)]


def list_shares(counts: Mapping[str, list[tuple[int, int]]]) -> list[list[str]]:
    """A line for each range of scores: percent right and, in brackets, the number of pairs."""
    lines = [["score", *counts]]
    for row, (low, high) in enumerate(pairwise(EDGES)):
        cells = [counts[name][row] for name in counts]
        shares = [f"{100 * right / pairs:.0f} ({pairs:,})" if pairs >= FEW else f"({pairs})" for pairs, right in cells]
        lines.append([f"{low:.1f} to {high:.1f}", *shares])
    return lines


def draw_shares(counts: Mapping[str, list[tuple[int, int]]]) -> Any:
    """Percent right against the score, where a range has enough pairs."""
    from quadmatch.drawing.curves import Curve, draw_curves

    middles = [(low + high) / 2 for low, high in pairwise(EDGES)]
    curves = {}
    for name, cells in counts.items():
        known = [(x, 100 * right / pairs) for x, (pairs, right) in zip(middles, cells) if pairs >= FEW]
        curves[name] = Curve([x for x, _ in known], [y for _, y in known])
    return draw_curves(curves, x_label="score of a pair", y_label="% of such pairs that are right")


FIGURE = Figure(about="what a score is worth: pairs that are right, by score, on validation pictures", make=make_scores)
