"""Which model for the same thing seen from elsewhere: right matches on warped photographs, beside SIFT."""

from __future__ import annotations

from collections.abc import Sequence

from quadmatch.bench.measurement import Row
from quadmatch.demo.photo_pairs import PhotoPair, list_photo_pairs, measure
from quadmatch.demo.photographs import match_both_ways
from quadmatch.demo.sift import match_sift
from quadmatch.result import MatchResult
from quadmatch.shipped import DEFAULT, TRAINED, UNTRAINED, list_models, load

STRENGTHS = {1.0: 90.0, 1.5: None, 2.0: None}
"""How far views are warped, and the percentage that the default model must reach there."""


def run(strengths: Sequence[float] = tuple(STRENGTHS), pairs: int = 4) -> list[Row]:
    """Percent right on the test photographs, which no model and no setting has seen."""
    rows: list[Row] = []
    sets = {strength: list_photo_pairs(pairs, strength=strength) for strength in strengths}
    sift = {strength: measure(chosen, _match_sift(chosen)) for strength, chosen in sets.items()}
    for name in (DEFAULT, TRAINED, UNTRAINED):
        if name not in list_models():
            continue
        matcher = load(name)
        for strength, chosen in sets.items():
            constrained, free = (measure(chosen, found) for found in match_both_ways(matcher, chosen))
            required = STRENGTHS.get(strength) if name == DEFAULT else None
            row: Row = {
                "name": f"photo warps, model {name}: % right beside SIFT",
                "size": f"strength {strength:g}, {len(chosen)} pairs, {sum(len(one.truth) for one in chosen)} points",
                "ours": constrained,
                "peer": sift[strength],
                "without_the_constraint": free,
            }
            if required is not None:
                row |= {"required": required, "met": constrained >= required and constrained > sift[strength]}
            rows.append(row)
    return rows


def _match_sift(pairs: Sequence[PhotoPair]) -> list[MatchResult]:
    return [match_sift(one.picture_a, one.points_a, one.picture_b, one.points_b) for one in pairs]
