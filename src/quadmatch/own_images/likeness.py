"""How alike places of two pictures look, by the features of a network there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from quadmatch.datasets.picture import Picture
from quadmatch.delaunay import CONSTRUCTIONS
from quadmatch.features.prepared import Prepared
from quadmatch.features.threads import evaluating
from quadmatch.features.trunk import join_entries
from quadmatch.layers.attributes import NodeAttributes
from quadmatch.matcher import Matcher
from quadmatch.matching import EDGE, Features

CLIMB = 1
"""Cells that a landmark may move uphill to where features are most alike."""
WEIGHTS = {EDGE: 2.0}
"""Of read-outs in how alike two places are; 1 where not given."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What a network makes of the keypoints of a picture."""

    prepared: Prepared
    looks: list[Float[np.ndarray, "K _"]]
    """What each keypoint looks like, as a vector, in one way or two: first the read-outs, which know the same
    thing again; then, where a head was trained, what it makes of them before it looks at edges, which knows
    things of one kind."""


@torch.no_grad()
def see(matcher: Matcher, picture: Picture) -> Seen:
    """A picture, whose box is what is seen of it, through a matcher's network."""
    with evaluating(matcher):
        prepared = matcher.prepare([picture])[0]
        features: Features = matcher.features(*join_entries([prepared.entry], prepared.single, matcher.device))
        parts = (one for one in matcher.head.modules() if isinstance(one, NodeAttributes) and one.project is not None)
        looks = [_join(features), *(one.look(features.join()) for one in islice(parts, 1))]
    return Seen(prepared, [rows[0].double().cpu().numpy() for rows in looks])


def match_some(
    matcher: Matcher, a: Seen, nodes: Int[np.ndarray, " K"], b: Seen, others: Int[np.ndarray, " M"], constraint: bool
) -> Int[np.ndarray, "P 2"]:
    """Which of some keypoints of one picture go with which of another's, by the whole matcher."""
    prepared = [_take(matcher, one.prepared, rows) for one, rows in ((a, nodes), (b, others))]
    found = matcher.match_prepared(prepared, [0], [1], constraint=constraint)[0]
    i, j = np.asarray(found.pairs).reshape(-1, 2).T
    return np.stack([nodes[i], others[j]], 1)


def _take(matcher: Matcher, prepared: Prepared, rows: Int[np.ndarray, " K"]) -> Prepared:
    """A prepared picture with some of its keypoints alone, joined anew."""
    entry = {part: values if part in prepared.single else values[rows] for part, values in prepared.entry.items()}
    points = prepared.points[torch.from_numpy(rows)]
    return replace(prepared, entry=entry, points=points, adjacency=CONSTRUCTIONS[matcher.construction](points))


def _join(features: Features) -> Float[Tensor, "B K C"]:
    """Read-outs beside each other: cosines of what is joined are weighted means of theirs."""
    weights = {name: WEIGHTS.get(name.split()[-1], 1.0) ** 0.5 for name in features.maps}
    return torch.cat([normalize(rows, dim=-1) * weights[name] for name, rows in features.maps.items()], -1)


def compare(
    source: Float[np.ndarray, "_ C"], target: Float[np.ndarray, "M C"], landmarks: int
) -> Float[np.ndarray, "K M"]:
    """How alike the first rows of one picture and all of another are: cosines from the middle of both pictures."""
    middle = (source[landmarks:].mean(0) + target.mean(0)) / 2
    a, b = (
        rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-9) for rows in (source - middle, target - middle)
    )
    return np.asarray(a[:landmarks] @ b.T)


def find_peak(maps: Float[np.ndarray, "K S S"], cells: Int[np.ndarray, "K 2"]) -> Float[np.ndarray, "K 2"]:
    """Where near cells (column, row) a map is largest: uphill by at most `CLIMB` cells, then by a parabola."""
    side, number = maps.shape[1], np.arange(len(maps))
    steps = np.array([(x, y) for y in (-1, 0, 1) for x in (-1, 0, 1)])
    for _ in range(CLIMB):
        around = (cells[:, None] + steps).clip(0, side - 1)
        best = maps[number[:, None], around[..., 1], around[..., 0]].argmax(1)
        cells = around[number, best]
    peaks = cells.astype(np.float64)
    for axis in (0, 1):
        step = np.eye(2, dtype=np.int64)[axis]
        three = [(cells + sign * step).clip(0, side - 1) for sign in (-1, 0, 1)]
        before, here, after = (maps[number, one[:, 1], one[:, 0]] for one in three)
        bend = before - 2 * here + after
        inner = (cells[:, axis] > 0) & (cells[:, axis] < side - 1)
        peaked = inner & (here >= before) & (here >= after) & (bend < 0)
        peaks[:, axis] += np.where(peaked, (before - after) / np.where(peaked, 2 * bend, 1), 0)
    return peaks
