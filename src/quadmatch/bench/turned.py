"""Turned photographs and mirror images: how often their orientation is found, and what that does for the match."""

from __future__ import annotations

from collections.abc import Sequence

from quadmatch.bench.measurement import Row
from quadmatch.datasets.photo_pairs import PicturePair, list_photo_pairs, measure
from quadmatch.datasets.picture import Picture, make_picture
from quadmatch.datasets.turning import AS_GIVEN, AUTO, ORIENTATIONS, turn_picture
from quadmatch.matcher import Matcher
from quadmatch.models.load import DEFAULT, load

BACK = {"90": "270", "270": "90"}
"""What undoes a turn; every other orientation undoes itself."""
FOUND, RIGHT = 90.0, 95.0
"""Percent of the orientations that must be found, and of the points that must be right then."""


def run(strengths: Sequence[float] = (1.0, 2.0), pairs: int = 4) -> list[Row]:
    """The default model on the test photographs, the second picture of each pair turned in one of eight ways."""
    matcher, rows = load(DEFAULT), []
    for strength in strengths:
        label = f"photo warps of strength {strength:g}, turned or mirrored, model {DEFAULT}"
        rows += measure_turned(matcher, list_photo_pairs(pairs, strength=strength), label, required=strength == 1)
    return rows


def measure_turned(matcher: Matcher, pairs: Sequence[PicturePair], label: str, *, required: bool) -> list[Row]:
    """How often the orientation is found, and points that are right: with it found, as given, and never turned."""
    names = [ORIENTATIONS[place % len(ORIENTATIONS)] for place in range(len(pairs))]
    source, target = range(0, 2 * len(pairs), 2), range(1, 2 * len(pairs), 2)
    upright = [picture for pair in pairs for picture in _show(pair, AS_GIVEN)]
    turned = [picture for pair, name in zip(pairs, names) for picture in _show(pair, BACK.get(name, name))]
    found = matcher.match_pictures(turned, source, target, orientation=AUTO)
    given = matcher.match_pictures(turned, source, target)
    whole = matcher.match_pictures(upright, source, target)
    share = 100 * sum(one.orientation == name for one, name in zip(found, names)) / len(pairs)
    right = measure(pairs, found)
    size = f"{len(pairs)} pairs, {sum(len(one.truth) for one in pairs)} points"
    rows: list[Row] = [
        {"name": f"{label}: % of orientations found", "size": size, "ours": share},
        {
            "name": f"{label}: % right, found beside as given",
            "size": size,
            "ours": right,
            "peer": measure(pairs, given),
        },
    ]
    rows[1]["never_turned"] = measure(pairs, whole)
    if required:
        for row, least in zip(rows, (FOUND, RIGHT)):
            row |= {"required": least, "met": row["ours"] >= least}
    return rows


def _show(pair: PicturePair, orientation: str) -> tuple[Picture, Picture]:
    second = make_picture(pair.picture_b, pair.points_b, name="image_b")
    return make_picture(pair.picture_a, pair.points_a, name="image_a"), turn_picture(second, orientation)
