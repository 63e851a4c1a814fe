"""Landmarks laid over a picture: each to where its features are found, together as an affine map bends them.

Places and landmarks are in the square that the network sees, in pixels of which it has 256 on a side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from quadmatch.solvers.quadratic.frank_wolfe_hard import frank_wolfe_hard

SIDE = 256.0
ROUNDS, WIDE, NARROW = 6, 80.0, 30.0
"""Rounds, and how far from where the map puts it a landmark is sought: in the first of them and in the last."""
STIFFNESS = 2000.0
"""Of the map, in squared pixels: landmarks that are spread over less do not turn or stretch it much."""
TURNED, DOUBT = 40.0, 0.15
"""Degrees by which the picture may be turned to begin with, and by how much a start that is not upright must win."""
PEAKS, PROMISING, APART = 4, 2, 20.0
"""Places that are left to choose from for each landmark, those that are worth a second look, and the pixels between."""
REACH, WEIGHT = 60.0, 0.1
"""Of the distances that the quadratic constraint compares, and the constraint's weight."""

Points = Float[np.ndarray, "K 2"]
Places = Float[np.ndarray, "M 2"]
Scores = Float[np.ndarray, "K M"]


def _turn(degrees: float) -> Float[np.ndarray, "2 2"]:
    angle = np.deg2rad(degrees)
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


STARTS = (_turn(0.0), _turn(-TURNED), _turn(TURNED), np.diag([-1.0, 1.0]))
"""Maps to begin with: upright, turned to either side, and mirrored, as a thing that looks the other way."""


class Laid(NamedTuple):
    """Where landmarks were found."""

    chosen: Int[np.ndarray, " K"]
    """The place of each."""
    promising: Int[np.ndarray, " P"]
    """Other places that may be theirs, and these."""
    expected: Points
    """Where the map puts the landmarks."""


def lay_out(alike: Scores, landmarks: Points, places: Places, *, constraint: bool = True) -> Laid:
    """Places for landmarks, no two the same, from how alike their features are."""
    scores = standardise(alike)
    middle = (places.min(0) + places.max(0)) / 2
    found = [_bend(scores, landmarks, places, start, middle) for start in STARTS]
    worth = [belief.max(1).mean() - (DOUBT if number else 0) for number, (belief, _) in enumerate(found)]
    belief, expected = found[int(np.argmax(worth))]
    belief = np.exp(belief - belief.max(1, keepdims=True))
    belief /= belief.sum(1, keepdims=True)
    chosen = _choose(belief, expected, places, WEIGHT if constraint else 0.0)
    others = {peak for row in belief for peak in _find_peaks(row, places, PROMISING)}
    return Laid(chosen, np.array(sorted({*chosen.tolist(), *others})), expected)


def standardise(alike: Scores) -> Scores:
    """Of each landmark over all places: mean 0 and deviation 1."""
    return np.asarray((alike - alike.mean(1, keepdims=True)) / alike.std(1, keepdims=True).clip(min=1e-9))


def _bend(
    scores: Scores, landmarks: Points, places: Places, turn: Float[np.ndarray, "2 2"], middle: Float[np.ndarray, " 2"]
) -> tuple[Scores, Points]:
    """What is believed of each place, and where the map puts the landmarks: found in turns, ever more narrowly."""
    expected = (landmarks - middle) @ turn + middle
    belief = scores
    for width in np.linspace(WIDE, NARROW, ROUNDS):
        distances = ((expected[:, None] - places) ** 2).sum(-1)
        belief = scores - distances / (2 * width**2)
        share = np.exp(belief - belief.max(1, keepdims=True))
        sure = 1 / share.sum(1) + 1e-3
        expected = _fit(landmarks, places[belief.argmax(1)], sure / sure.sum(), turn)
    return belief, expected


def _fit(landmarks: Points, found: Points, share: Float[np.ndarray, " K"], turn: Float[np.ndarray, "2 2"]) -> Points:
    """Landmarks under the affine map that brings them next to what was found; stiff, it is a turn and a shift."""
    centre, other = share @ landmarks, share @ found
    weighted = (landmarks - centre) * share[:, None]
    square = weighted.T @ (landmarks - centre) + STIFFNESS * np.eye(2)
    matrix = np.linalg.solve(square, weighted.T @ (found - other) + STIFFNESS * turn)
    return np.asarray((landmarks - centre) @ matrix + other)


def _choose(belief: Scores, expected: Points, places: Places, weight: float) -> Int[np.ndarray, " K"]:
    """One place for each landmark under the quadratic constraint: distances between them as the map has them."""
    import torch

    best = np.argsort(-belief, axis=1, kind="stable")[:, : len(belief)]  # So that there are enough.
    apart = {peak for row in belief for peak in _find_peaks(row, places, PEAKS)}
    peaks = np.array(sorted({*apart, *best.ravel().tolist()}))
    nodes = (belief[:, peaks], _compare(expected), _compare(places[peaks]))
    unary, source, target = (torch.from_numpy(np.ascontiguousarray(one))[None] for one in nodes)
    found = frank_wolfe_hard(unary, source, target, weight=weight).assignment[0]
    return np.asarray(peaks[found.argmax(1).numpy()])


def _find_peaks(row: Float[np.ndarray, " M"], places: Places, count: int) -> list[int]:
    """The best places of a landmark that lie apart."""
    left = row.copy()
    peaks: list[int] = []
    for _ in range(count):
        peaks.append(int(left.argmax()))
        left[((places - places[peaks[-1]]) ** 2).sum(1) < APART**2] = -np.inf
    return peaks


def _compare(points: Points) -> Float[np.ndarray, "K K"]:
    """How close points are to each other, from 0 to 1; 0 to themselves."""
    close = np.exp(-np.linalg.norm(points[:, None] - points, axis=-1) / REACH)
    np.fill_diagonal(close, 0)
    return np.asarray(close)
