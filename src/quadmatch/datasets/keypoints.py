"""Keypoints of one picture, and the choice of them in files that list those of many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Int

from quadmatch.datasets.boxes import Box
from quadmatch.datasets.points import check_count, check_points

Key = TypeVar("Key")
One = TypeVar("One")
SHOWN = 10
"""Objects that an error lists."""


@dataclass(frozen=True, eq=False)
class Keypoints:
    """Keypoints of one picture, in pixels of the upright picture."""

    points: Float[np.ndarray, "K 2"]
    indices: Int[np.ndarray, " K"]
    """Each one's place in the file; not 0, 1, 2, … where the file lists keypoints that are not there."""
    length: int
    """Places in the file."""
    names: tuple[str, ...] | None = None
    """One for each place in the file."""
    box: Box | None = None
    """The part of the picture to look at, where the file says so."""

    def name_all(self) -> tuple[str, ...]:
        """A name for each place in the file: its number where it has none."""
        return self.names or count_names(self.length)


@dataclass(frozen=True, eq=False)
class Listed:
    """An object in a file that lists those of many pictures."""

    image: str | None
    """The picture that the file says it is in."""
    number: str
    """What tells it from others in the file, or of its picture."""
    keypoints: Keypoints
    from_bottom: bool = False
    """Whether y grows upwards from the lower edge of the picture."""

    def place(self, height: int | None, where: str) -> Keypoints:
        """The keypoints from the upper edge of a picture of that height."""
        if not self.from_bottom:
            return self.keypoints
        if height is None:
            raise ValueError(f"{where} counts y from the bottom of the picture: name the picture, for its height")
        return replace(self.keypoints, points=self.keypoints.points * (1, -1) + (0, height))


def make_keypoints(
    points: Float[np.ndarray, "K 2"], names: tuple[str, ...] | None = None, box: Box | None = None
) -> Keypoints:
    """Keypoints that are all there."""
    return Keypoints(points, np.arange(len(points)), len(points), names, box)


def take_present(
    points: Sequence[Sequence[float] | None], names: Sequence[str] | None, box: Box | None, where: str
) -> Keypoints:
    """Keypoints of which some are not there (None); the others keep their places."""
    check_count(len(points), where)
    own = [number for number, point in enumerate(points) if point is not None]
    called = None if names is None else [names[number] for number in own]
    checked = check_points([points[number] for number in own], where, called or [str(number) for number in own])
    return Keypoints(checked, np.array(own, dtype=np.int64), len(points), None if names is None else tuple(names), box)


def count_names(count: int) -> tuple[str, ...]:
    """What keypoints without names are called."""
    return tuple(str(number) for number in range(count))


def name_points(
    names: Sequence[str], points: list[object], where: str, lines: Sequence[int] | None = None
) -> Keypoints:
    """Named points, checked; names that only count are none."""
    own = tuple(names)
    return make_keypoints(check_points(points, where, own, lines), None if own == count_names(len(own)) else own)


def choose_one(found: Mapping[Key, One], file: Path, image: Path | None, wanted: str | None) -> tuple[Key, One]:
    """The one object of a picture that a file has, or the one whose number is wanted."""
    if wanted is not None:
        found = {number: one for number, one in found.items() if str(number) == wanted}
        if not found:
            raise ValueError(f"{file} has no annotation {wanted} with keypoints")
    whose = "" if image is None else f" for {image.name}"
    if not found:
        raise ValueError(f"{file} has no object with keypoints{whose}")
    if len(found) > 1:
        listed = ", ".join(str(other) for other in list(found)[:SHOWN])
        example = f"{file.name}#{next(iter(found))}"
        raise ValueError(f"{file} has {len(found)} objects{whose}: {listed}; say which, as in {example}")
    return next(iter(found.items()))


def find_named(names: Mapping[Key, str], image: Path) -> set[Key]:
    """Who has this picture's file name; where several folders have one, those of the same folder."""
    parts = {key: Path(name.replace("\\", "/")).parts for key, name in names.items()}
    own = image.absolute().parts
    alike = {key for key, other in parts.items() if other and other[-1] == own[-1]}
    whole = {key for key in alike if own[-len(parts[key]) :] == parts[key]}
    longest = max((len(parts[key]) for key in whole), default=0)
    return {key for key in whole if len(parts[key]) == longest} or alike


def find_listed(listed: Iterable[Listed], image: Path | None) -> dict[str, Listed]:
    """Objects of a picture by their numbers: those that name it, else those that name none."""
    numbered = list(listed)
    if image is not None:
        named = find_named({place: one.image for place, one in enumerate(numbered) if one.image}, image)
        numbered = [one for place, one in enumerate(numbered) if place in named] or [
            one for one in numbered if not one.image
        ]
    if len({one.number for one in numbered}) < len(numbered):
        return {str(place): one for place, one in enumerate(numbered)}
    return {one.number: one for one in numbered}
