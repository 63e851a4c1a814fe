"""A folder of one's own pictures with keypoints, in COCO's format or with a file beside each picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.beside import read_beside
from quadmatch.datasets.coco import is_coco, read_coco, read_json
from quadmatch.datasets.splits import check_split, hold_out, take_split

WORDS = {"train": "train", "val": "validation", "validation": "validation", "test": "test"}


def folder(
    root: Path | str | None = None, split: str = "train", *, crop: bool = True, test_share: float = 0.2
) -> list[Annotation]:
    """The objects of a split of one's own pictures.

    Subfolders `train`, `val` and `test`, or COCO files with such a word in their name, say which split an
    object is in. Without them `test_share` of each category's pictures is for testing, by a hash of the
    picture's name. With `crop` an object is seen in its box, if it states one, else in the whole picture.
    """
    check_split(split)
    if root is None:
        raise ValueError("a folder of pictures needs its root")
    place = Path(root).expanduser()
    if not place.exists():
        raise FileNotFoundError(f"there is no folder {place}")
    if not 0 <= test_share < 1:
        raise ValueError(f"test_share must be at least 0 and less than 1, got {test_share}")
    stated = _read_stated(place, crop)
    if not any(stated.values()):
        raise ValueError(
            f"{place} holds no keypoints: neither a COCO file nor a CSV or JSON file beside a picture"
        )
    chosen = _choose(stated, split, test_share)
    if not chosen:
        raise FileNotFoundError(f"{place} has no objects for split {split!r}")
    return sorted(chosen, key=lambda one: one.name)


def _read_stated(place: Path, crop: bool) -> dict[str, list[Annotation]]:
    """Objects by the split that their folder or file states; "" if none."""
    stated: dict[str, list[Annotation]] = {"": [], "train": [], "validation": [], "test": []}
    if place.is_file():
        return stated | {"": read_coco(place, place.parent, crop=crop)}
    subfolders = {word: place / word for word in WORDS if (place / word).is_dir()}
    if subfolders:
        for word, subfolder in subfolders.items():
            found = _read_all(subfolder, crop)
            stated[WORDS[word]] += [replace(one, name=f"{word}/{one.name}") for one in found]
        return stated
    files = _list_coco(place)
    for file in files:
        words = {WORDS[word] for word in re.findall(r"[a-z]+", file.stem.lower()) if word in WORDS}
        stated[words.pop() if len(words) == 1 else ""] += read_coco(file, place, crop=crop)
    return stated if files else stated | {"": read_beside(place, crop=crop)}


def _read_all(place: Path, crop: bool) -> list[Annotation]:
    files = _list_coco(place)
    return [one for file in files for one in read_coco(file, place, crop=crop)] or read_beside(
        place, crop=crop
    )


def _list_coco(place: Path) -> list[Path]:
    """JSON files in a folder or in its `annotations` that are in COCO's format."""
    files = [*place.glob("*.json"), *place.glob("annotations/*.json")]
    return sorted(file for file in files if is_coco(read_json(file)))


def _choose(stated: dict[str, list[Annotation]], split: str, test_share: float) -> Sequence[Annotation]:
    free = stated[""]
    testing = set[str]()
    if not stated["test"] and test_share:
        testing = hold_out(((one.category, picture_of(one)) for one in free), test_share, "test")
    if split == "test":
        return stated["test"] + [one for one in free if picture_of(one) in testing]
    training = stated["train"] + [one for one in free if picture_of(one) not in testing]
    if not stated["validation"]:
        return take_split(training, split, picture_of)
    if split == "validation":
        return stated["validation"]
    return training + (stated["validation"] if split == "trainval" else [])


def picture_of(annotation: Annotation) -> str:
    """The picture's folder and file name, by which splits are drawn."""
    assert isinstance(annotation.image, Path)
    return f"{annotation.image.parent.name}/{annotation.image.name}"
