"""The official archives of each data set: their names, addresses and what they hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Archive:
    """One official file of a data set."""

    file: str
    holds: str
    """What a user misses without it."""
    marker: str
    """A folder, or the file itself, by which an unpacked copy is recognised."""
    urls: tuple[str, ...]
    largest: int
    """Bytes that it may have, and that it may unpack to: a few times what official ones do."""
    most: int = 1
    """Files that it may hold, likewise."""
    wanted: tuple[str, ...] = ()
    """Folders of the archive that are used; all if empty."""
    known: tuple[str, ...] = ()
    """SHA-256 or MD5 of copies that were checked to be complete."""


BERKELEY = "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/shape/poselets"

ARCHIVES: dict[str, tuple[Archive, ...]] = {
    "willow": (
        Archive(
            "WILLOW-ObjectClass_dataset.zip",
            "pictures and keypoints",
            "WILLOW-ObjectClass",
            (
                "https://www.di.ens.fr/willow/research/graphlearning/WILLOW-ObjectClass_dataset.zip",
                "https://huggingface.co/heatingma/pygmtools/resolve/main/WILLOW-ObjectClass_dataset.zip",
            ),
            largest=256 * 2**20,
            most=5_000,
            known=("74106e52273e6cc7eb7b031938d4f8b93706f9ee00e652976ee31415e90b6f18",),
        ),
    ),
    "pascal-voc": (
        Archive(
            "VOCtrainval_25-May-2011.tar",
            "pictures and object flags",
            "VOC2011",
            ("http://host.robots.ox.ac.uk/pascal/VOC/voc2011/VOCtrainval_25-May-2011.tar",),
            largest=4 * 2**30,
            most=100_000,
            wanted=("Annotations", "JPEGImages"),
            known=("6c3384ef61512963050cb5d687e5bf1e",),
        ),
        Archive(
            "voc2011_keypoints_Feb2012.tgz",
            "the Berkeley keypoints",
            "annotations",
            (
                f"{BERKELEY}/voc2011_keypoints_Feb2012.tgz",
                f"https://web.archive.org/web/20240416142946id_/{BERKELEY}/voc2011_keypoints_Feb2012.tgz",
            ),
            largest=256 * 2**20,
            most=50_000,
        ),
        Archive(
            "voc2011_pairs.npz",
            "the field's split",
            "voc2011_pairs.npz",
            (
                "http://cvgl.stanford.edu/projects/ucn/voc2011_pairs.npz",
                "https://github.com/Thinklab-SJTU/PCA-GM/raw/master/data/PascalVOC/voc2011_pairs.npz",
            ),
            largest=16 * 2**20,
            known=("ef2f8767c15a13db9694268e6a00fd8ddaf06687b733d4d50d9acf4f87469179",),
        ),
    ),
}
