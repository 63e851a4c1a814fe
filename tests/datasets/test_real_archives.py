"""The real archives, where `QUADMATCH_MIRROR` names a folder of them."""

import os
from collections import Counter
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from quadmatch.datasets import load_crop, pascal_voc, willow
from quadmatch.datasets.archives import find_file, prepare
from quadmatch.datasets.pairs import draw_test_pairs

MIRROR = os.environ.get("QUADMATCH_MIRROR", "")
TRAINING = {
    "aeroplane": 469,
    "bicycle": 211,
    "bird": 623,
    "boat": 414,
    "bottle": 466,
    "bus": 288,
    "car": 532,
    "cat": 416,
    "chair": 299,
    "cow": 258,
    "diningtable": 28,
    "dog": 608,
    "horse": 217,
    "motorbike": 234,
    "person": 539,
    "pottedplant": 436,
    "sheep": 363,
    "sofa": 73,
    "train": 170,
    "tvmonitor": 376,
}


def has(file):
    return bool(MIRROR and Path(MIRROR).is_dir() and find_file(Path(MIRROR), file))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("real")


@pytest.mark.skipif(not has("WILLOW-ObjectClass_dataset.zip"), reason="needs the Willow archive")
def test_willow(root):
    prepare("willow", mirror=MIRROR, root=root)
    train, test = (Counter(one.category for one in willow(root, split)) for split in ("trainval", "test"))
    assert dict(train + test) == {"Car": 40, "Duck": 50, "Face": 108, "Motorbike": 40, "Winebottle": 66}
    assert set(train.values()) == {20}
    crop, points = load_crop(willow(root, "test")[0])
    assert crop.std() > 20
    assert ((points >= 0) & (points <= 256)).all()


def fit_affine(points, others):
    """The determinant of the affine map from points to others that fits best, and what it leaves of their spread."""
    known = np.c_[points, np.ones(len(points))]
    linear = np.linalg.lstsq(known, others, rcond=None)[0]
    return np.linalg.det(linear[:2]), np.linalg.norm(known @ linear - others) / np.linalg.norm(others - others.mean(0))


@pytest.mark.skipif(not has("WILLOW-ObjectClass_dataset.zip"), reason="needs the Willow archive")
def test_no_object_of_willow_is_another_ones_mirror_image_and_two_have_keypoints_exchanged(root):
    prepare("willow", mirror=MIRROR, root=root)
    objects = {one.name: one for split in ("trainval", "test") for one in willow(root, split)}
    for one, other in combinations(objects.values(), 2):
        if one.category == other.category:
            assert fit_affine(one.points, other.points)[0] > 0
    for name, pair in {"Duck/060_0003": (1, 9), "Car/Cars_030a": (5, 6)}.items():
        exchanged = objects[name].points.copy()
        exchanged[list(pair)] = exchanged[list(pair[::-1])]
        others = [one.points for one in objects.values() if one.category == objects[name].category and one.name != name]
        before, after = (
            median(fit_affine(one, points)[1] for one in others) for points in (objects[name].points, exchanged)
        )
        assert after < 0.8 * before


@pytest.mark.slow
@pytest.mark.skipif(not has("VOCtrainval_25-May-2011.tar"), reason="needs the Pascal VOC archives")
def test_pascal_voc(root):
    prepare("pascal-voc", mirror=MIRROR, root=root)
    try:
        objects = pascal_voc(root, "trainval")
    except FileNotFoundError:
        assert len(pascal_voc(root, "test")) == 1682
        return
    assert Counter(one.category for one in objects) == TRAINING
    assert len({one.image for one in objects}) == 5010
    assert sum(not one.names for one in objects) == 67
    kept = sum(len(one.names) for one in objects)
    inside = sum(len(one.names) for one in pascal_voc(root, "trainval", outside="drop"))
    assert round(100 * (1 - inside / kept), 2) == 1.08
    left = Counter(one.category for one in pascal_voc(root, "trainval", exclude_2007=True))
    assert Counter(TRAINING) - left == {"car": 28, "motorbike": 23}
    validation, train = pascal_voc(root, "validation"), pascal_voc(root, "train")
    assert not {one.image for one in validation} & {one.image for one in train}
    assert len(validation) + len(train) == 7020
    assert 0.09 < len(validation) / 7020 < 0.11
    assert len(draw_test_pairs(validation)) == 20_000
    crop, _ = load_crop(validation[0])
    assert crop.std() > 20
