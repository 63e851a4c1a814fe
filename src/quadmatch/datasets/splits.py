"""Which annotations belong to a split: validation, or a fold of several, is held out by hashes of pictures' names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.hashing import hash_text

SPLITS = ("train", "validation", "trainval", "test")
HELD_OUT = 0.1


FOLD = re.compile(r"(fold|rest)-([1-9]\d?)-of-([1-9]\d?)")
"""As in `fold-2-of-4`, a quarter of what is for training, and `rest-2-of-4`, the other three."""


def check_split(split: str, *, folds: bool = False) -> None:
    """Refuse an unknown split by name; not every data set has folds."""
    if split in SPLITS or (folds and read_fold(split)):
        return
    more = ", fold-K-of-N or rest-K-of-N with K up to N" if folds else ""
    raise ValueError(f"split must be one of {', '.join(SPLITS)}{more}; got {split!r}")


def read_fold(split: str) -> tuple[bool, int, int] | None:
    """Whether a split is a fold, not the rest; its number and how many there are. None if it is neither."""
    found = FOLD.fullmatch(split)
    number, count = (int(found[2]), int(found[3])) if found else (0, 0)
    return (found[1] == "fold", number, count) if found and number <= count and count > 1 else None


def deal_folds(pictures: Iterable[tuple[str, str]], count: int) -> dict[str, int]:
    """The fold, from 1, of each picture, given (category, picture) of every object; categories are dealt out evenly.

    One picture is in one fold, whatever the categories of the objects in it.
    """
    folds: dict[str, int] = {}
    by_category: dict[str, set[str]] = {}
    for category, picture in pictures:
        by_category.setdefault(category, set()).add(picture)
    for category in sorted(by_category):
        names = sorted(by_category[category] - folds.keys(), key=lambda name: (hash_text("folds", name), name))
        folds |= {name: place % count + 1 for place, name in enumerate(names, len(folds))}
    return folds


def hold_out(pictures: Iterable[tuple[str, str]], share: float = HELD_OUT, purpose: str = "validation") -> set[str]:
    """Names of the pictures that are kept out of training, given (category, picture) of every object.

    Of each category, the `share` with the smallest hash, but at least two where there are ten or more, so
    that a pair exists. One picture is wholly on one side, whatever the categories of the objects in it.
    """
    by_category: dict[str, set[str]] = {}
    for category, picture in pictures:
        by_category.setdefault(category, set()).add(picture)
    chosen: set[str] = set()
    for names in by_category.values():
        count = round(share * len(names))
        if len(names) >= 10:
            count = max(count, 2)
        chosen.update(sorted(names, key=lambda name: (hash_text(purpose, name), name))[:count])
    return chosen


def take_split(
    annotations: Sequence[Annotation], split: str, picture_of: Callable[[Annotation], str]
) -> list[Annotation]:
    """Of the training annotations, those of "train", "validation", "trainval" or a fold, sorted by name."""
    ordered = sorted(annotations, key=lambda annotation: annotation.name)
    if split == "trainval":
        return ordered
    pictures = [(annotation.category, picture_of(annotation)) for annotation in ordered]
    if fold := read_fold(split):
        inside, number, count = fold
        folds = deal_folds(pictures, count)
        return [one for one in ordered if (folds[picture_of(one)] == number) == inside]
    held = hold_out(pictures)
    return [one for one in ordered if (picture_of(one) in held) == (split == "validation")]
