"""A folder of one's own pictures with keypoints, in COCO's format or with a file beside each picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.boxes import clip_box
from quadmatch.datasets.coco import is_coco, read_coco
from quadmatch.datasets.keypoint_files import READERS, list_objects, load_file, parse_keypoints, put_upright
from quadmatch.datasets.keypoint_tables import read_table
from quadmatch.datasets.keypoints import Keypoints
from quadmatch.datasets.labelme import is_labelme
from quadmatch.datasets.pixels import read_size
from quadmatch.datasets.splits import check_split, hold_out, take_split
from quadmatch.datasets.texts import read_json

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")
BESIDE = (".csv", ".json", *READERS)
"""Ends of the names of files of points beside pictures."""
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
            f"{place} holds no keypoints: neither a COCO, TPS or CVAT file nor a file of points beside a picture"
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
    return [one for file in files for one in read_coco(file, place, crop=crop)] or read_beside(place, crop=crop)


def _list_coco(place: Path) -> list[Path]:
    """JSON files in a folder or in its `annotations` that are in COCO's format."""
    files = [*place.glob("*.json"), *place.glob("annotations/*.json")]
    return sorted(file for file in files if is_coco(read_json(file)))


def list_pictures(root: Path) -> list[Path]:
    """Every picture below a folder, in order of name."""
    files = (path for path in root.rglob("*") if path.suffix.lower() in PICTURES)
    return sorted(path for path in files if path.is_file() and not path.name.startswith("."))


def read_beside(root: Path, *, crop: bool = True) -> list[Annotation]:
    """An object for each picture that has keypoints beside it; its category is its folder below `root`.

    Pictures without a file of their own are looked up in the TPS and CVAT files of the folder.
    """
    objects: list[Annotation] = []
    pictures = list_pictures(root)
    shared = _list_shared(root, {image.with_suffix("") for image in pictures})
    for image in pictures:
        found = [image.with_suffix(suffix) for suffix in BESIDE]
        found = [path for path in found if path.is_file() and not _is_foreign(path)]
        if len(found) > 1:
            raise ValueError(f"{image} has keypoints in both {found[0].name} and {found[1].name}: keep one")
        if found:
            objects += _read_objects(found[0], image, root, crop)
        for file in shared if not found else ():
            objects += _read_listed(file, image, root, crop)
    return objects


def _list_shared(root: Path, stems: set[Path]) -> list[Path]:
    """TPS and CVAT files in a folder or in its `annotations` that may list many pictures."""
    files = sorted(
        file for suffix in READERS for part in ("", "annotations") for file in (root / part).glob(f"*{suffix}")
    )
    return [file for file in files if file.with_suffix("") not in stems and not _is_foreign(file)]


def _is_foreign(file: Path) -> bool:
    """Whether an XML file is none of CVAT's: other programs lay theirs beside pictures too."""
    if file.suffix != ".xml":
        return False
    with file.open("rb") as content:
        return b"<annotations" not in content.read(4096)


def _name(image: Path, root: Path) -> tuple[str, str]:
    """Name and category of the object in a picture."""
    category = image.parent.relative_to(root).as_posix()
    return image.relative_to(root).with_suffix("").as_posix(), "object" if category == "." else category


def _read_listed(path: Path, image: Path, root: Path, crop: bool) -> list[Annotation]:
    """The objects that a file of several lists for a picture."""
    name, category = _name(image, root)
    found, objects = list_objects(path, image), []
    for number, one in found.items():
        where = f"{path}, {number}"
        label = f"{name}_{number}" if len(found) > 1 else name
        objects.append(_annotate(put_upright(one, where, image), label, category, image, crop, where))
    return objects


def _read_objects(path: Path, image: Path, root: Path, crop: bool) -> list[Annotation]:
    """The objects of one picture: the file of keypoints beside it has one, or a list of several."""
    name, category = _name(image, root)
    if path.suffix == ".csv":
        return [_annotate(read_table(path), name, category, image, crop, str(path))]
    stored = load_file(path)
    if path.suffix in READERS or is_labelme(stored):
        return _read_listed(path, image, root, crop)
    rows = {("", str(path)): stored}
    if isinstance(stored, dict) and "objects" in stored:
        if not isinstance(stored["objects"], list):
            raise ValueError(f"{path}: objects must be a list")
        rows = {(f"_{row}", f"{path}, object {row}"): one for row, one in enumerate(stored["objects"])}
    objects = []
    for (number, where), row in rows.items():
        keypoints = parse_keypoints(row, where)
        kind = str(row.get("category", category)) if isinstance(row, dict) else category
        objects.append(_annotate(keypoints, name + number, kind, image, crop, where))
    return objects


def _annotate(keypoints: Keypoints, name: str, category: str, image: Path, crop: bool, where: str) -> Annotation:
    names = tuple(keypoints.name_all()[place] for place in keypoints.indices)
    if len(set(names)) != len(names):
        twice = next(one for one in names if names.count(one) > 1)
        raise ValueError(f"{where}: keypoint {twice!r} is there twice")
    box = keypoints.box if crop else None
    if box is not None:
        box = clip_box(box, *read_size(image, where))
    return Annotation(name, category, image, box, names, keypoints.points)


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
