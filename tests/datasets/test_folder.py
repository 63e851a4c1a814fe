import json

import numpy as np
import pytest
from archive_fixtures import draw_picture, write_files

from quadmatch.datasets import folder, load_crop

SPLITS = ("train", "validation", "test")


def as_json(value):
    return json.dumps(value).encode()


def make_coco(count=4, start=0):
    images = [{"id": 7 + n, "file_name": f"p{n + start}.png", "width": 48, "height": 36} for n in range(count)]
    rows = [
        {
            "id": 100 + n,
            "image_id": 7 + n,
            "category_id": 1 + n % 2,
            "bbox": [4, 5, 30, 60],
            "keypoints": [10, 12, 2, 20 + n, 14, 1, 0, 0, 0],
        }
        for n in range(count)
    ]
    kinds = [{"id": 1 + n, "name": name, "keypoints": ["a", "b", "c"]} for n, name in enumerate(("cat", "dog"))]
    return {"images": images, "annotations": rows, "categories": kinds}


def make_pictures(count, start=0):
    return {f"p{n + start}.png": draw_picture(n) for n in range(count)}


def test_coco(tmp_path):
    write_files(tmp_path, make_pictures(4) | {"keypoints.json": as_json(make_coco())})
    found = folder(tmp_path, "trainval", test_share=0.0)
    assert [one.name for one in found] == ["cat/p0_100", "cat/p2_102", "dog/p1_101", "dog/p3_103"]
    one = found[1]
    assert (one.category, one.names, one.box) == ("cat", ("a", "b"), (4.0, 5.0, 34.0, 36.0))
    assert one.points.tolist() == [[10, 12], [22, 14]]
    crop, points = load_crop(one, 64)
    assert crop.shape == (64, 64, 3)
    assert points[0].tolist() == pytest.approx([6 * 64 / 30, 7 * 64 / 31])
    assert folder(tmp_path, "trainval", test_share=0.0, crop=False)[0].box is None
    alone = folder(tmp_path / "keypoints.json", "trainval", test_share=0.0)
    assert [one.name for one in alone] == [one.name for one in found]


def test_coco_files_and_folders_state_the_split(tmp_path):
    pictures = {f"images/{name}": data for name, data in make_pictures(12).items()}
    coco = tmp_path / "coco"
    write_files(coco, pictures)
    for split, start in (("train", 0), ("val", 4), ("test", 8)):
        write_files(coco / "annotations", {f"kp_{split}2017.json": as_json(make_coco(4, start))})
        write_files(tmp_path / "folders" / split, make_pictures(4, start))
        write_files(tmp_path / "folders" / split, {"x.json": as_json(make_coco(4, start))})
    for root in (coco, tmp_path / "folders"):
        places = [{one.image.stem for one in folder(root, split)} for split in ("validation", "test", "trainval")]
        assert places == [{f"p{n}" for n in range(low, high)} for low, high in ((4, 8), (8, 12), (0, 8))]
        names = [one.name for one in folder(root, "trainval")]
        assert len(set(names)) == len(names) == 8


@pytest.mark.parametrize(
    "text",
    [
        "name,x,y\nhead,3,4\ntail, 10.5,6\n",
        "head,3,4\n\ntail,10.5,6",
        "\ufeffName;".replace(";", ",X,Y\nhead,3,4\ntail,10.5,6"),
    ],
)
def test_csv_beside(tmp_path, text):
    write_files(tmp_path, {"cat/a.png": draw_picture(0), "cat/a.csv": text.encode(), "cat/b.png": draw_picture(1)})
    (one,) = folder(tmp_path, "trainval", test_share=0.0)
    assert (one.name, one.category, one.names, one.box) == ("cat/a", "cat", ("head", "tail"), None)
    assert one.points.tolist() == [[3, 4], [10.5, 6]]


def test_points_without_names_are_numbered(tmp_path):
    write_files(tmp_path, {"a.png": draw_picture(0), "a.csv": b"3,4\n10.5,6"})
    (one,) = folder(tmp_path, "trainval", test_share=0.0)
    assert (one.category, one.names) == ("object", ("0", "1"))


@pytest.mark.parametrize(
    "keypoints",
    [{"head": [3, 4], "tail": [10.5, 6]}, [{"name": "head", "x": 3, "y": 4}, {"name": "tail", "x": 10.5, "y": 6}]],
)
def test_json_beside(tmp_path, keypoints):
    stored = {"keypoints": keypoints, "box": [-2, 1, 20, 99], "category": "dog"}
    write_files(tmp_path, {"x/a.jpg": draw_picture(0, kind="JPEG"), "x/a.json": as_json(stored)})
    several = {"objects": [stored, {"keypoints": keypoints}]}
    write_files(tmp_path, {"x/b.jpg": draw_picture(0, kind="JPEG"), "x/b.json": as_json(several)})
    found = folder(tmp_path, "trainval", test_share=0.0)
    assert [(one.name, one.category) for one in found] == [("x/a", "dog"), ("x/b_0", "dog"), ("x/b_1", "x")]
    assert found[0].box == (0.0, 1.0, 20.0, 36.0)
    assert all(one.names == ("head", "tail") for one in found)
    assert all(np.array_equal(one.points, [[3, 4], [10.5, 6]]) for one in found)
    load_crop(found[0])


def test_splits_are_disjoint_and_do_not_depend_on_order(tmp_path):
    files = {}
    for n in range(40):
        files |= {f"cat/{n}.png": draw_picture(n), f"cat/{n}.csv": b"a,3,4"}
    write_files(tmp_path / "one", files)
    write_files(tmp_path / "two", dict(reversed(files.items())))
    names = {split: [one.name for one in folder(tmp_path / "one", split)] for split in SPLITS}
    assert [len(names[split]) for split in SPLITS] == [29, 3, 8]
    assert len(set().union(*names.values())) == 40
    assert names == {split: [one.name for one in folder(tmp_path / "two", split)] for split in SPLITS}


def change(key, place, **values):
    stored = make_coco()
    stored[key][place] |= values
    return stored


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"k.json": as_json(change("images", 0, file_name="gone.png"))}, r"k\.json: the picture gone\.png"),
        ({"k.json": as_json(change("images", 0, file_name="../../secret.png"))}, r"k\.json: the picture"),
        ({"k.json": as_json(change("annotations", 1, image_id=99))}, "annotation 101: image_id 99 is not"),
        ({"k.json": as_json(change("annotations", 1, category_id=9))}, "annotation 101: category_id 9 is not"),
        ({"k.json": as_json(change("annotations", 1, id=100))}, "annotations holds id 100 twice"),
        ({"k.json": as_json(change("annotations", 0, keypoints=[1, 2]))}, "annotation 100: keypoints must be"),
        ({"k.json": as_json(change("annotations", 0, keypoints=[1, 2, 2]))}, "100 has 1 keypoints, its category"),
        ({"k.json": as_json(change("annotations", 0, bbox=[1]))}, "annotation 100: bbox must be"),
        ({"k.json": b"{"}, r"cannot read .*k\.json"),
        ({"p0.csv": b"a,1\nb,2,3"}, r"p0\.csv: every line"),
        ({"p0.csv": b"a,1,x"}, r"p0\.csv, line 1: keypoint 'a' needs two numbers"),
        ({"p0.csv": b"a,1,nan"}, r"p0\.csv, line 1: keypoint 'a' must be finite"),
        ({"p0.csv": b"a,1,2\na,3,4"}, r"p0\.csv: keypoint 'a' is there twice"),
        ({"p0.csv": b"a,1,2", "p0.json": b"{}"}, r"p0\.png has keypoints in both"),
        ({"p0.json": b"{}"}, r"p0\.json has no points"),
        ({"p0.json": as_json({"keypoints": 3})}, r"p0\.json: keypoints must be"),
        ({"p0.json": as_json({"keypoints": {"a": [1]}})}, r"p0\.json: keypoint 'a' needs"),
        ({"p0.json": as_json({"keypoints": {}, "box": [1]})}, r"p0\.json: box must be"),
        ({"p0.json": as_json({"objects": 3})}, r"p0\.json: objects must be"),
        ({}, "holds no keypoints"),
    ],
)
def test_mistakes_are_named(tmp_path, files, message):
    (tmp_path / "secret.png").write_bytes(draw_picture(0))
    write_files(tmp_path / "a" / "b", make_pictures(4) | files)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        folder(tmp_path / "a" / "b", "trainval")


def test_roots_are_checked(tmp_path):
    with pytest.raises(ValueError, match="needs its root"):
        folder()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        folder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="test_share"):
        folder(tmp_path, test_share=1.0)
    write_files(tmp_path / "train", {"a.png": draw_picture(0), "a.csv": b"a,1,2"})
    with pytest.raises(FileNotFoundError, match="no objects for split 'test'"):
        folder(tmp_path, "test")
