"""Willow Object Class: five classes, ten keypoints on every object (Cho, Alahari, Ponce, ICCV 2013)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.boxes import clip_box
from quadmatch.datasets.pixels import read_size
from quadmatch.datasets.splits import check_split, take_split

CATEGORIES = ("Car", "Duck", "Face", "Motorbike", "Winebottle")
KEYPOINTS = 10
TRAINING = 20
"""Pictures of each class, in order of name, that are for training."""
LEFT_OUT = "Face/image_0160"
"""It has eight keypoints."""
COPIES = ("Car/Cars_025a", "Car/Cars_027a", "Car/Cars_030a")
"""Pixel for pixel the pictures Cars_013a, Cars_017b and Cars_004b; the first and the last of those are for training."""


def willow(
    root: Path | str | None = None,
    split: str = "train",
    *,
    crop: bool = False,
    margin: float = 0.1,
    distinct: bool = False,
) -> list[Annotation]:
    """The objects of a split; the whole picture as the field does, or with `crop` the keypoints' box.

    `margin` widens that box on each side by this share of its width and height. With `distinct`
    the test split has no picture that is a copy of another.
    """
    check_split(split, folds=True)
    folder = find_willow(root)
    annotations: list[Annotation] = []
    for category in CATEGORIES:
        names = list_pictures(folder, category)
        names = names[TRAINING:] if split == "test" else names[:TRAINING]
        names = [name for name in names if not distinct or f"{category}/{name}" not in COPIES]
        annotations += [_read(folder, category, name, crop, margin) for name in names]
    if split == "test":
        return sorted(annotations, key=lambda annotation: annotation.name)
    return take_split(annotations, split, lambda annotation: annotation.name)


def find_willow(root: Path | str | None) -> Path:
    """The folder that holds the classes' folders, at any depth of `root`."""
    from quadmatch.datasets.archives import resolve, walk

    for folder in resolve("willow", root):
        for here, folders, _ in walk(folder):
            if set(CATEGORIES) <= set(folders):
                return here
    raise FileNotFoundError(
        f"no folder with {', '.join(CATEGORIES)} under {root}: `quadmatch data prepare willow` makes it"
    )


def list_pictures(folder: Path, category: str) -> list[str]:
    """Names without suffix of a class's pictures, sorted, each checked to have its keypoints' file."""
    files = (folder / category).glob("*.png")
    names = sorted(path.stem for path in files if not path.name.startswith("."))
    for name in names:
        if not (folder / category / f"{name}.mat").is_file():
            raise FileNotFoundError(f"keypoints are missing: {folder / category / name}.mat")
    return [name for name in names if f"{category}/{name}" != LEFT_OUT]


def _read(folder: Path, category: str, name: str, crop: bool, margin: float) -> Annotation:
    points = read_points(folder / category / f"{name}.mat")
    image = folder / category / f"{name}.png"
    width, height = read_size(image)
    box = (0.0, 0.0, float(width), float(height))
    if crop:
        low, high = points.min(0), points.max(0)
        extra = margin * (high - low)
        (x0, y0), (x1, y1) = (low - extra).tolist(), (high + extra).tolist()
        box = clip_box((x0, y0, x1, y1), width, height)
    keypoints = tuple(str(number) for number in range(len(points)))
    return Annotation(f"{category}/{name}", category, image, box, keypoints, points)


def read_points(path: Path) -> Float[np.ndarray, "K 2"]:
    """`pts_coord` of a MATLAB file, 2 × 10, as ten rows of (x, y)."""
    from scipy.io import loadmat

    try:
        stored = loadmat(str(path), variable_names=["pts_coord"])
    except Exception as error:
        raise ValueError(f"cannot read the keypoints {path}: {error}") from error
    if "pts_coord" not in stored:
        raise ValueError(f"{path} has no variable pts_coord")
    points = np.asarray(stored["pts_coord"])
    if points.shape != (2, KEYPOINTS) or not np.issubdtype(points.dtype, np.number):
        raise ValueError(f"{path}: pts_coord must be 2 × {KEYPOINTS} numbers, got {points.shape}")
    return np.ascontiguousarray(points.T, dtype=np.float64)
