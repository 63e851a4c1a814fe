"""Which model for the same thing seen from elsewhere: right matches on warped photographs, beside SIFT."""

from __future__ import annotations

from collections.abc import Sequence

from quadmatch.bench.measurement import Row
from quadmatch.bench.walls import list_wall_pairs
from quadmatch.datasets.photo_pairs import PicturePair, list_photo_pairs, measure
from quadmatch.demo.photographs import match_both_ways
from quadmatch.demo.sift import match_sift
from quadmatch.models.load import DEFAULT, TRAINED, UNTRAINED, list_models, load
from quadmatch.result import MatchResult

STRENGTHS = {1.0: 90.0, 1.5: None, 2.0: None}
"""How far views are warped, and the percentage that the default model must reach there."""
TURNS = (20.0, 40.0, 60.0)
"""Degrees between two views of the corner of a house."""


def run(strengths: Sequence[float] = tuple(STRENGTHS), turns: Sequence[float] = TURNS, pairs: int = 4) -> list[Row]:
    """Percent right on the test photographs, which no model and no setting has seen."""
    sets: dict[str, tuple[Sequence[PicturePair], float | None]] = {
        f"photo warps, strength {strength:g}": (list_photo_pairs(pairs, strength=strength), STRENGTHS.get(strength))
        for strength in strengths
    }
    sets |= {f"corner of a house, turned by {turn:g}°": (list_wall_pairs(turn), None) for turn in turns}
    sift = {label: measure(chosen, _match_sift(chosen)) for label, (chosen, _) in sets.items()}
    rows: list[Row] = []
    for name in (DEFAULT, TRAINED, UNTRAINED):
        if name not in list_models():
            continue
        matcher = load(name)
        for label, (chosen, required) in sets.items():
            constrained, free = (measure(chosen, found) for found in match_both_ways(matcher, chosen))
            row: Row = {
                "name": f"{label}, model {name}: % right beside SIFT",
                "size": f"{len(chosen)} pairs, {sum(len(one.truth) for one in chosen)} points",
                "ours": constrained,
                "peer": sift[label],
                "without_the_constraint": free,
            }
            if required is not None and name == DEFAULT:
                row |= {"required": required, "met": constrained >= required and constrained > sift[label]}
            rows.append(row)
    return rows


def _match_sift(pairs: Sequence[PicturePair]) -> list[MatchResult]:
    return [match_sift(one.picture_a, one.points_a, one.picture_b, one.points_b) for one in pairs]
