"""Which annotations belong to a split: validation is held out of train by a hash of the picture's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.hashing import hash_text

SPLITS = ("train", "validation", "trainval", "test")
HELD_OUT = 0.1


def check_split(split: str) -> None:
    """Refuse an unknown split by name."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}; got {split!r}")


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
    """Of the training annotations, those of "train", "validation" or "trainval", sorted by name."""
    ordered = sorted(annotations, key=lambda annotation: annotation.name)
    if split == "trainval":
        return ordered
    held = hold_out((annotation.category, picture_of(annotation)) for annotation in ordered)
    return [one for one in ordered if (picture_of(one) in held) == (split == "validation")]
