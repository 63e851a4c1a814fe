"""Data sets: objects in pictures with named keypoints, and pairs of them."""

from collections.abc import Callable

from quadmatch.datasets.annotation import Annotation, load_crop
from quadmatch.datasets.folder import folder
from quadmatch.datasets.pascal_voc import pascal_voc
from quadmatch.datasets.photo_warps import photo_warps
from quadmatch.datasets.willow import willow

DATASETS: dict[str, Callable[..., list[Annotation]]] = {
    "willow": willow,
    "pascal-voc": pascal_voc,
    "folder": folder,
    "photo-warps": photo_warps,
}
"""Each takes (root, split) and options of its own."""

__all__ = ["DATASETS", "Annotation", "folder", "load_crop", "pascal_voc", "photo_warps", "willow"]
