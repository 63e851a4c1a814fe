import io

import pytest
from archive_fixtures import WILLOW, willow_files, write_files, write_zip
from scipy.io import savemat

from quadmatch.datasets import load_crop, willow
from quadmatch.datasets.splits import deal_folds


@pytest.fixture(autouse=True)
def _own_root(tmp_path, monkeypatch):
    monkeypatch.setenv("QUADMATCH_DATA", str(tmp_path / "default"))
    monkeypatch.delenv("QUADMATCH_MIRROR", raising=False)


@pytest.fixture
def root(tmp_path):
    return write_files(tmp_path / "root", willow_files())


def test_the_first_twenty_of_each_class_are_for_training(root):
    names = {split: [one.name for one in willow(root, split)] for split in ("train", "validation", "test")}
    every = [f"{kind}/{kind}_{number:03d}" for kind in WILLOW for number in range(23)]
    assert names["test"] == [name for name in every if int(name[-3:]) >= 20]
    assert sorted(names["train"] + names["validation"]) == [name for name in every if int(name[-3:]) < 20]
    assert [one.name for one in willow(root, "trainval")] == sorted(names["train"] + names["validation"])
    for kind in WILLOW:
        assert sum(name.startswith(kind) for name in names["validation"]) == 2


def test_folds_share_the_training_pictures_out(root):
    whole = [one.name for one in willow(root, "trainval")]
    folds = [[one.name for one in willow(root, f"fold-{number}-of-4")] for number in (1, 2, 3, 4)]
    assert sorted(name for fold in folds for name in fold) == whole
    for number, fold in enumerate(folds, 1):
        assert [sum(name.startswith(kind) for name in fold) for kind in WILLOW] == [5] * 5
        assert [one.name for one in willow(root, f"rest-{number}-of-4")] == [one for one in whole if one not in fold]
    assert folds[0] != whole[:25]
    for wrong in ("fold-5-of-4", "fold-1-of-1", "fold-0-of-4", "part-1-of-4", "fold-1"):
        with pytest.raises(ValueError, match="fold-K-of-N or rest-K-of-N with K up to N; got"):
            willow(root, wrong)


def test_a_picture_with_two_kinds_of_objects_is_in_one_fold():
    pictures = [("car", str(number)) for number in range(9)] + [("bus", str(number)) for number in range(4, 12)]
    folds = deal_folds(pictures, 3)
    assert set(folds) == {str(number) for number in range(12)}
    assert sorted(list(folds.values()).count(number) for number in (1, 2, 3)) == [4, 4, 4]
    assert deal_folds(reversed(pictures), 3) == folds


def test_copies_can_be_left_out(root):
    folder = next(root.rglob("Car"))
    renamed = {"013a": 1, "004b": 2, "017b": 20, "025a": 21, "027a": 22}
    for name, number in renamed.items():
        for path in folder.glob(f"Car_{number:03d}.*"):
            path.rename(folder / f"Cars_{name}{path.suffix}")
    every, distinct = ([one.name for one in willow(root, "test", distinct=distinct)] for distinct in (False, True))
    assert set(every) - set(distinct) == {"Car/Cars_025a", "Car/Cars_027a"}
    assert {one.name for one in willow(root, "trainval", distinct=True)} >= {"Car/Cars_013a", "Car/Cars_004b"}


def test_an_object(root):
    one = willow(root, "test")[0]
    assert one.category == "Car"
    assert one.box == (0.0, 0.0, 48.0, 36.0)
    assert one.names == tuple("0123456789")
    crop, points = load_crop(one)
    assert crop.shape == (256, 256, 3)
    assert points.shape == (10, 2)


def test_crop_is_the_keypoints_box_and_a_margin(root):
    one = willow(root, "test", crop=True, margin=0.25)[0]
    low, high = one.points.min(0), one.points.max(0)
    expected = [*(low - 0.25 * (high - low)), *(high + 0.25 * (high - low))]
    expected = [max(expected[0], 0), max(expected[1], 0), min(expected[2], 48), min(expected[3], 36)]
    assert one.box == pytest.approx(expected)


def test_archive_mirror_and_folder_are_alike(tmp_path, root):
    write_zip(tmp_path / "mirror" / "x" / "WILLOW-ObjectClass_dataset.zip", willow_files())
    expected = [(one.name, one.points.tolist()) for one in willow(root, "train")]
    for place in (tmp_path / "mirror", root / "WILLOW-ObjectClass", tmp_path / "default", None):
        assert [(one.name, one.points.tolist()) for one in willow(place, "train")] == expected


def test_broken_and_missing_files_are_named(tmp_path, root):
    folder = root / "WILLOW-ObjectClass" / "Duck"
    (folder / "Duck_003.mat").write_bytes(b"junk")
    with pytest.raises(ValueError, match=r"Duck_003\.mat"):
        willow(root, "trainval")
    stream = io.BytesIO()
    savemat(stream, {"pts_coord": [[1.0, 2.0], [3.0, 4.0]]})
    (folder / "Duck_003.mat").write_bytes(stream.getvalue())
    with pytest.raises(ValueError, match=r"Duck_003\.mat: pts_coord must be 2 × 10"):
        willow(root, "trainval")
    savemat(folder / "Duck_003.mat", {"other": [1.0]})
    with pytest.raises(ValueError, match="no variable pts_coord"):
        willow(root, "trainval")
    (folder / "Duck_003.mat").unlink()
    with pytest.raises(FileNotFoundError, match=r"Duck_003\.mat"):
        willow(root, "trainval")
    write_files(root, willow_files())
    (folder / "Duck_022.png").write_bytes(b"junk")
    with pytest.raises(ValueError, match=r"Duck_022\.png"):
        willow(root, "test")
    assert len(willow(root, "trainval")) == 100
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="quadmatch data prepare willow"):
        willow(tmp_path / "empty")
    with pytest.raises(ValueError, match="split must be one of"):
        willow(root, "val")
