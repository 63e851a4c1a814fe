"""Data sets: objects in pictures with named keypoints, and pairs of them."""

from collections.abc import Callable

from quadmatch.datasets.annotation import Annotation, load_crop
from quadmatch.datasets.pascal_voc import pascal_voc
from quadmatch.datasets.willow import willow

DATASETS: dict[str, Callable[..., list[Annotation]]] = {
    "willow": willow,
    "pascal-voc": pascal_voc,
}
"""Each takes (root, split) and options of its own."""

__all__ = ["DATASETS", "Annotation", "load_crop", "pascal_voc", "willow"]
