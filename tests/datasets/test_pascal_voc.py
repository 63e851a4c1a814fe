import sys

import pytest
from archive_fixtures import (
    TRAIN_KEPT,
    VOC_TEST,
    VOC_TRAIN,
    keypoint_files,
    make_voc,
    split_file,
    voc_files,
    write_files,
)

from quadmatch.datasets import load_crop, pascal_voc
from quadmatch.datasets.archives import prepare


@pytest.fixture(autouse=True)
def _own_root(tmp_path, monkeypatch):
    monkeypatch.setenv("QUADMATCH_DATA", str(tmp_path / "default"))
    monkeypatch.delenv("QUADMATCH_MIRROR", raising=False)


def list_names(*arguments, **options):
    return [one.name for one in pascal_voc(*arguments, **options)]


def test_the_filter_drops_flagged_objects_and_late_people(tmp_path):
    # The person of 2008_000008 goes with the flag of the picture's last object, as in the field's filter.
    assert list_names(make_voc(tmp_path, VOC_TRAIN), "trainval") == TRAIN_KEPT


def test_the_flag_of_a_persons_last_object_counts(tmp_path):
    changed = VOC_TRAIN | {"2008_000008": [("car", "truncated", 5), ("person", "", 5)]}
    root = write_files(tmp_path / "root", voc_files(changed) | keypoint_files(changed))
    (root / "voc2011_pairs.npz").write_bytes(split_file(["person/2008_000008_0"], []))
    assert list_names(root, "trainval") == ["person/2008_000008_0"]


@pytest.mark.parametrize("prefix", ["TrainVal/VOCdevkit/VOC2011", "VOCdevkit/VOC2011", "deep/er/VOC2011"])
def test_layouts_are_alike(tmp_path, prefix):
    mirror = make_voc(tmp_path / "mirror", VOC_TRAIN, VOC_TEST, prefix=prefix)
    files = voc_files(VOC_TRAIN | VOC_TEST, prefix) | keypoint_files(VOC_TRAIN | VOC_TEST)
    unpacked = write_files(tmp_path / "unpacked", files)
    (unpacked / "voc2011_pairs.npz").write_bytes((mirror / "voc2011_pairs.npz").read_bytes())
    prepare("pascal-voc", mirror=mirror, root=tmp_path / "root")
    for split, expected in (("trainval", TRAIN_KEPT), ("test", None)):
        first, second, third, again = (
            pascal_voc(root, split) for root in (mirror, unpacked, tmp_path / "root", tmp_path / "root" / "pascal-voc")
        )
        assert expected is None or [one.name for one in first] == expected
        assert first
        for one, two, three, four in zip(first, second, third, again, strict=True):
            for other in (two, three, four):
                assert (one.name, one.box, one.names) == (other.name, other.box, other.names)
                assert (one.points == other.points).all()
                assert other.image.is_file()


def test_an_object(tmp_path):
    one = pascal_voc(make_voc(tmp_path, VOC_TRAIN), "trainval")[0]
    assert (one.category, one.image.name) == ("aeroplane", "2008_000002.jpg")
    assert one.box == (5.0, 4.0, 35.0, 32.0)
    assert one.names == ("Nose", "Tail", "L_Wing", "R_Wing", "Top")  # invisible ones too
    crop, points = load_crop(one)
    assert crop.shape == (256, 256, 3)
    assert points[4].tolist() == pytest.approx([(45 - 5) * 256 / 30, (2 - 4) * 256 / 28])


def test_keypoints_outside_of_the_box_can_be_dropped(tmp_path):
    mirror = make_voc(tmp_path, VOC_TRAIN)
    kept, dropped = pascal_voc(mirror, "trainval"), pascal_voc(mirror, "trainval", outside="drop")
    for one, other in zip(kept, dropped, strict=True):
        assert other.names == tuple(name for name in one.names if name != "Top")
        assert other.points.tolist() == one.points[: len(other.names)].tolist()
    with pytest.raises(ValueError, match='"keep" or "drop"'):
        pascal_voc(mirror, outside="no")


def test_willows_pictures_can_be_left_out(tmp_path):
    mirror = make_voc(tmp_path, VOC_TRAIN)
    left = set(TRAIN_KEPT) - set(list_names(mirror, "trainval", exclude_2007=True))
    assert left == {"car/2007_000001_1", "motorbike/2007_000001_2"}


def test_categories_can_be_left_out_or_taken_alone(tmp_path):
    mirror = make_voc(tmp_path, VOC_TRAIN)
    cars = [name for name in TRAIN_KEPT if name.startswith("car/")]
    assert list_names(mirror, "trainval", only=("car",)) == cars
    assert list_names(mirror, "trainval", without=("car",)) == [name for name in TRAIN_KEPT if name not in cars]
    assert list_names(mirror, "trainval", only=("car",), without=("car",)) == []
    for key in ("only", "without"):
        with pytest.raises(ValueError, match=f"{key}: there is no category cat; there are aeroplane, car"):
            pascal_voc(mirror, "trainval", **{key: ("cat",)})


def test_validation_is_part_of_train_and_whole_pictures(tmp_path):
    many = {f"2008_{number:06d}": [("car", "", 5), ("aeroplane", "", 4)] for number in range(40)}
    root = write_files(tmp_path / "root", voc_files(many) | keypoint_files(many))
    names = [name.removeprefix("annotations/").removesuffix(".xml") for name in keypoint_files(many)]
    (root / "voc2011_pairs.npz").write_bytes(split_file(names, []))
    train, validation = list_names(root, "train"), list_names(root, "validation")
    assert sorted(train + validation) == list_names(root, "trainval") == sorted(names)
    assert len(validation) == 8
    pictures = [{name.split("/")[1][:11] for name in split} for split in (train, validation)]
    assert not pictures[0] & pictures[1]


def test_a_mirror_of_one_split_serves_that_split_only(tmp_path):
    train, test = make_voc(tmp_path / "train", VOC_TRAIN), make_voc(tmp_path / "test", VOC_TEST)
    assert list_names(train, "trainval") == TRAIN_KEPT
    with pytest.raises(FileNotFoundError, match=r"testing, 2 files.*Annotations/2011_000001\.xml"):
        pascal_voc(train, "test")
    assert len(pascal_voc(test, "test")) == 4
    with pytest.raises(FileNotFoundError, match="training"):
        pascal_voc(test, "train")
    for mirror in (train, test):
        prepare("pascal-voc", mirror=mirror, root=tmp_path / "both")
    assert list_names(tmp_path / "both", "trainval") == TRAIN_KEPT
    assert len(pascal_voc(tmp_path / "both", "test")) == 4


def test_a_mirror_without_what_the_filter_drops_is_complete_by_its_count(tmp_path, monkeypatch):
    needed = {picture: objects for picture, objects in VOC_TRAIN.items() if picture != "2008_000008"}
    mirror = make_voc(tmp_path, needed)
    with pytest.raises(FileNotFoundError, match="2008_000008"):
        pascal_voc(mirror, "trainval")
    monkeypatch.setitem(sys.modules["quadmatch.datasets.pascal_voc"].COMPLETE, "train", len(TRAIN_KEPT))
    assert list_names(mirror, "trainval") == TRAIN_KEPT


@pytest.mark.parametrize(
    ("file", "contents", "message"),
    [
        ("annotations/car/2007_000001_1.xml", None, r"annotations/car/2007_000001_1\.xml"),
        ("TrainVal/VOCdevkit/VOC2011/JPEGImages/2007_000001.jpg", None, r"JPEGImages/2007_000001\.jpg"),
        ("TrainVal/VOCdevkit/VOC2011/Annotations/2007_000001.xml", b"<a", r"2007_000001\.xml"),
        ("TrainVal/VOCdevkit/VOC2011/Annotations/2007_000001.xml", b"<a/>", "size/width"),
        ("annotations/car/2007_000001_1.xml", b"<annotation/>", "no visible_bounds"),
        (
            "annotations/car/2007_000001_1.xml",
            b'<annotation><visible_bounds xmin="a"/></annotation>',
            "<visible_bounds> needs a number xmin, got 'a'",
        ),
        ("voc2011_pairs.npz", None, "voc2011_pairs.npz is not under"),
        ("voc2011_pairs.npz", b"junk", "cannot read the split file"),
        ("voc2011_pairs.npz", split_file(["car/2007_000001_9"], []), "has 2 objects"),
    ],
)
def test_broken_and_missing_files_are_named(tmp_path, file, contents, message):
    root = write_files(tmp_path / "root", voc_files(VOC_TRAIN) | keypoint_files(VOC_TRAIN))
    names = [name.removeprefix("annotations/").removesuffix(".xml") for name in keypoint_files(VOC_TRAIN)]
    (root / "voc2011_pairs.npz").write_bytes(split_file(names, []))
    assert list_names(root, "trainval") == TRAIN_KEPT
    if contents is None:
        (root / file).unlink()
    else:
        (root / file).write_bytes(contents)
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        pascal_voc(root, "trainval")


def test_a_prepared_data_set_is_parsed_once(tmp_path, monkeypatch):
    prepare("pascal-voc", mirror=make_voc(tmp_path / "mirror", VOC_TRAIN))
    first = pascal_voc(None, "trainval")
    monkeypatch.setattr("quadmatch.datasets.voc_folders.read_split_file", None)
    second = pascal_voc(None, "trainval")
    for one, other in zip(first, second, strict=True):
        assert (one.name, one.image, one.box, one.names) == (other.name, other.image, other.box, other.names)
        assert (one.points == other.points).all()
    monkeypatch.undo()
    monkeypatch.setenv("QUADMATCH_DATA", str(tmp_path / "default"))
    index = next((tmp_path / "default" / "pascal-voc").glob("objects-*.json"))
    index.write_text("[{}")
    assert [one.name for one in pascal_voc(None, "trainval")] == TRAIN_KEPT
