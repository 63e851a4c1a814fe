"""Pascal VOC 2011 with the Berkeley keypoints (Bourdev and Malik, ICCV 2009), as the field filters it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.boxes import Box, clip_box
from quadmatch.datasets.splits import check_split, take_split
from quadmatch.datasets.voc_folders import VocFolders, find_voc, parse, read_number
from quadmatch.datasets.voc_index import recall, remember

TOLERANCE = 1e-5
COMPLETE = {"train": 7020, "test": 1682}
"""Objects that the filter leaves of the complete data set."""


def pascal_voc(
    root: Path | str | None = None,
    split: str = "train",
    *,
    outside: str = "keep",
    exclude_2007: bool = False,
    only: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> list[Annotation]:
    """The objects of a split that the field's filter leaves: 7,020 for training, 1,682 for testing.

    Objects flagged difficult, occluded or truncated are dropped, and people in pictures after 2008. The crop
    is the keypoints' `visible_bounds`; `outside` says whether keypoints out of it are kept or dropped.
    `exclude_2007` leaves out cars and motorbikes of 2007, which Willow's classes were taken from. `only` are the
    categories that are kept, all where it is empty, and `without` those that are left out.
    """
    check_split(split, folds=True)
    if outside not in ("keep", "drop"):
        raise ValueError(f'outside must be "keep" or "drop", got {outside!r}')
    folders = find_voc(root)
    part = "test" if split == "test" else "train"
    annotations = recall(folders, part)
    if annotations is None:
        annotations = read_part(folders, part)
        remember(folders, part, annotations)
    if split != "test":
        annotations = take_split(annotations, split, picture_of)
    annotations = _choose(annotations, only, without)
    if exclude_2007:
        annotations = [one for one in annotations if not _is_willow(one)]
    return [_drop_outside(one) for one in annotations] if outside == "drop" else annotations


def read_part(folders: VocFolders, part: str) -> list[Annotation]:
    """All objects of "train" or "test" that the filter leaves, or an error that names what is missing."""
    names = folders.read_names(part)
    kept, missing = filter_names(folders, names)
    # A mirror may leave out what the filter drops: then nothing is known of those objects but the count.
    if missing and len(kept) != COMPLETE[part]:
        raise FileNotFoundError(
            f"pascal-voc: of the {len(names)} objects for {part}ing, {len(missing)} files are missing, first "
            f"{', '.join(missing[:3])}; looked in {folders.describe()}"
        )
    return [read_object(folders, name) for name in kept]


def picture_of(annotation: Annotation) -> str:
    """The name of the picture that an object is in."""
    return split_name(annotation.name)[1]


def split_name(name: str) -> tuple[str, str, int]:
    """`aeroplane/2008_000008_1` → ("aeroplane", "2008_000008", 1)."""
    category, _, rest = name.partition("/")
    picture, _, number = rest.rpartition("_")
    if not (category and picture and number.isdigit()):
        raise ValueError(f"expected a name like aeroplane/2008_000008_1, got {name!r}")
    return category, picture, int(number)


def filter_names(folders: VocFolders, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names that the filter keeps, sorted, and the files that are missing to know or to load them."""
    kept, missing = [], []
    for name in sorted(names):
        category, picture, number = split_name(name)
        if category == "person" and picture[:4] > "2008":
            continue
        stated = folders.read_picture(picture)
        if stated is None:
            missing.append(f"Annotations/{picture}.xml")
            continue
        if number > len(stated.flagged):
            raise ValueError(f"{name}: the VOC annotation of {picture} has {len(stated.flagged)} objects")
        # Objects count from 1; people's files say 0, which the field's filter reads as the last object.
        if stated.flagged[number - 1]:
            continue
        if folders.find_keypoints(name) is None:
            missing.append(f"annotations/{name}.xml")
        elif folders.find_picture(picture) is None:
            missing.append(f"JPEGImages/{picture}.jpg")
        else:
            kept.append(name)
    return kept, list(dict.fromkeys(missing))


def read_object(folders: VocFolders, name: str) -> Annotation:
    """One object with its keypoints, those marked invisible included, as the field does."""
    category, picture, _ = split_name(name)
    path, image = folders.find_keypoints(name), folders.find_picture(picture)
    stated = folders.read_picture(picture)
    if path is None or image is None or stated is None:
        raise FileNotFoundError(f"{name}: its keypoints, its picture or its VOC annotation is missing")
    tree = parse(path)
    bounds = tree.find("visible_bounds")
    if bounds is None:
        raise ValueError(f"{path} has no visible_bounds")
    x0, y0, width, height = (read_number(bounds, key, path) for key in ("xmin", "ymin", "width", "height"))
    keypoints = tree.findall("keypoints/keypoint")
    points = [[read_number(one, key, path) for key in "xy"] for one in keypoints]
    names = tuple(one.get("name") or "" for one in keypoints)
    box: Box = (x0, y0, x0 + width, y0 + height)
    positions = np.array(points, dtype=np.float64).reshape(-1, 2)
    return Annotation(name, category, image, clip_box(box, *stated.size), names, positions)


def _choose(annotations: Sequence[Annotation], only: Iterable[str], without: Iterable[str]) -> list[Annotation]:
    """Objects of the named categories; a name that no object has is an error."""
    known = {one.category for one in annotations}
    for key, names in (("only", only), ("without", without)):
        if unknown := sorted(set(names) - known):
            raise ValueError(f"{key}: there is no category {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    kept = (set(only) or known) - set(without)
    return [one for one in annotations if one.category in kept]


def _is_willow(annotation: Annotation) -> bool:
    return annotation.category in ("car", "motorbike") and picture_of(annotation).startswith("2007")


def _drop_outside(annotation: Annotation) -> Annotation:
    from dataclasses import replace

    assert annotation.box is not None
    low, high = np.array(annotation.box[:2]) - TOLERANCE, np.array(annotation.box[2:]) + TOLERANCE
    inside = np.asarray(((annotation.points >= low) & (annotation.points <= high)).all(1))
    names = tuple(name for name, keep in zip(annotation.names, inside) if keep)
    return replace(annotation, names=names, points=annotation.points[inside])
