"""Few keypoints facing many: the crops around them may show different things."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quadmatch.datasets.picture import Picture
from quadmatch.datasets.pixels import read_pixels

FEW = 0.5
"""Keypoints of one picture, as a share of the other's, up to which they may be a part of the object only."""
NARROW = 0.5
"""Their span beside the other's, up to which their crop is taken for another part."""


def compare_spans(a: Picture, b: Picture) -> str | None:
    """What is doubtful about the parts of two pictures that are compared, in words, if anything is."""
    few, many = sorted((a, b), key=lambda one: len(one.keypoints.points))
    counts = len(few.keypoints.points), len(many.keypoints.points)
    if few.keypoints.box is not None or not 2 <= counts[0] <= FEW * counts[1]:
        return None
    spans = [np.ptp(one.keypoints.points, axis=0) for one in (few, many)]
    sizes = [max(one.size or (1, 1)) if few.size and many.size else 1 for one in (few, many)]
    if not 0 < spans[0].max() / sizes[0] <= NARROW * spans[1].max() / sizes[1]:
        return None
    words = [f"{x:.0f} × {y:.0f}" for x, y in spans]
    letter = few.name[-1] if few.name[-2:] in ("_a", "_b") else ""
    option = f" (--box-{letter} x,y,w,h)" if letter else ""
    return (
        f"{few.name}: its {counts[0]} keypoints span {words[0]} pixels, the {counts[1]} of {many.name} {words[1]}; "
        f"if they lie on the same object, give a box around all of it{option}"
    )


def show_whole(picture: Picture) -> Picture:
    """The picture seen whole, unless it has a box."""
    if picture.keypoints.box is not None:
        return picture
    pixels = read_pixels(picture.image, picture.name)
    box = 0.0, 0.0, float(pixels.shape[1]), float(pixels.shape[0])
    return replace(picture, image=pixels, keypoints=replace(picture.keypoints, box=box))


def add_whole(
    pictures: Sequence[Picture], source: Sequence[int], target: Sequence[int]
) -> tuple[list[Picture], list[int], list[int], list[int]]:
    """The pictures and pairs, given by their places, behind which doubtful pairs (`compare_spans`) come seen whole.

    The last list says which pairs those are.
    """
    pairs = list(zip(source, target))
    doubtful = [pair for pair, (i, j) in enumerate(pairs) if compare_spans(pictures[i], pictures[j])]
    places = dict.fromkeys(place for pair in doubtful for place in pairs[pair])
    whole = {place: len(pictures) + row for row, place in enumerate(places)}
    pairs += [(whole[i], whole[j]) for i, j in (pairs[pair] for pair in doubtful)]
    shown = [*pictures, *(show_whole(pictures[place]) for place in places)]
    return shown, [i for i, _ in pairs], [j for _, j in pairs], doubtful
