"""Points half-way between neighbouring keypoints, for training: many more places that objects of a category share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from quadmatch.datasets.annotation import Annotation, frame_points
from quadmatch.datasets.protocols import ADDED, BETWEEN

NEAREST = 2
"""Other keypoints with which a keypoint has a point between: those that lie nearest to it on average."""
Pair = tuple[str, str]


def add_between(annotations: Sequence[Annotation]) -> list[Annotation]:
    """Each object with points half-way between those of its keypoints that are neighbours in its category.

    A point between the two ends of a wing lies on the wing of any bird, more or less. Points of one name are
    partners, as keypoints are: a network learns of places that nobody has annotated.
    """
    neighbours = find_neighbours(annotations)
    return [_add(one, neighbours[one.category]) for one in annotations]


def find_neighbours(annotations: Sequence[Annotation]) -> dict[str, list[Pair]]:
    """By category, the keypoints that lie nearest to each other on average over its objects, each pair once."""
    distances: dict[str, dict[Pair, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in annotations:
        names, points = _own(one), frame_points(one)
        for pair in combinations(sorted(names), 2):
            first, second = (points[names[name]] for name in pair)
            distances[one.category][pair].append(float(np.hypot(*(first - second))))
    return {category: _choose(distances[category]) for category in {one.category for one in annotations}}


def _choose(distances: dict[Pair, list[float]]) -> list[Pair]:
    """The pairs that are among the nearest of either keypoint."""
    ordered = sorted(distances, key=lambda pair: (np.mean(distances[pair]), pair))
    seen: dict[str, int] = defaultdict(int)
    chosen = []
    for pair in ordered:
        if min(seen[name] for name in pair) < NEAREST:
            chosen.append(pair)
        for name in pair:
            seen[name] += 1
    return sorted(chosen)


def _add(annotation: Annotation, neighbours: Iterable[Pair]) -> Annotation:
    """The object with the points between those of the neighbours that it has both."""
    own = _own(annotation)
    pairs = [pair for pair in neighbours if own.keys() >= set(pair)]
    middles = [annotation.points[[own[name] for name in pair]].mean(0) for pair in pairs]
    names = tuple(f"{BETWEEN}{first}/{second}" for first, second in pairs)
    points = np.concatenate([annotation.points, np.reshape(middles, (-1, 2))])
    return replace(annotation, names=annotation.names + names, points=points)


def _own(annotation: Annotation) -> dict[str, int]:
    """Where the annotated keypoints of an object are in its list."""
    return {name: place for place, name in enumerate(annotation.names) if not name.startswith(ADDED)}
