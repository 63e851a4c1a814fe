"""Objects seen in a mirror: twice the training data, for a category's left and right are a matter of view."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from quadmatch.datasets.annotation import Annotation

MIRRORED = ", mirrored"
"""Ends the name of a mirrored object."""
SIDES = {"l": "r", "r": "l", "left": "right", "right": "left"}
WORD = re.compile("[A-Za-z]+")


def swap_sides(name: str) -> str:
    """A keypoint's name with left and right exchanged, as in `L_Eye`, `left ear` or `Seat_Right_Back`."""
    return WORD.sub(_swap, name)


def _swap(found: re.Match[str]) -> str:
    word = found[0]
    other = SIDES.get(word.lower(), word)
    if word.isupper():
        return other.upper()
    return other.capitalize() if word[0].isupper() else other


def add_mirrored(annotations: Sequence[Annotation]) -> list[Annotation]:
    """The objects, and each of them once more as a mirror shows it.

    A mirrored object is one of its category with left and right exchanged. If no keypoint of the category
    has a side in its name, nothing tells which to exchange: mirrored objects then are a category of their
    own, paired with each other.
    """
    sided = {one.category for one in annotations if any(name != swap_sides(name) for name in one.names)}
    return [*annotations, *(_mirror(one, one.category in sided) for one in annotations)]


def _mirror(annotation: Annotation, sided: bool) -> Annotation:
    return replace(
        annotation,
        name=annotation.name + MIRRORED,
        category=annotation.category if sided else annotation.category + MIRRORED,
        names=tuple(swap_sides(name) for name in annotation.names) if sided else annotation.names,
        mirrored=not annotation.mirrored,
    )
