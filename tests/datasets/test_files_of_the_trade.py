"""Files that other programs write: TPS, tables of ImageJ and of European spreadsheets, labelme, CVAT."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from quadmatch.datasets.folder import folder
from quadmatch.datasets.keypoint_files import read_keypoints
from quadmatch.datasets.keypoint_writing import write_keypoints
from quadmatch.datasets.keypoints import Keypoints

WINGS = """LM=3
10.5 20
30,25 40
NA NA
CURVES=1
POINTS=2
1 2
3 4
IMAGE=C:\\pictures\\first.png
ID=7
SCALE=0.01

LM=2
1 2
-1 -1
IMAGE=second.png
ID=8
"""
CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations><version>1.1</version>
<image id="0" name="shots/first.png" width="60" height="50">
 <box label="bird" xtl="1" ytl="2" xbr="50" ybr="40"/>
 <points label="beak" points="10.5,20.0"/><points label="wing" points="30,40;31,41"/>
</image>
<image id="1" name="second.png" width="60" height="50">
 <skeleton label="bird"><points label="beak" outside="0" points="1,2"/>
  <points label="tail" outside="1" points="0,0"/></skeleton>
 <skeleton label="bird"><points label="beak" outside="0" points="5,6"/>
  <points label="tail" outside="0" points="7,8"/></skeleton>
</image></annotations>"""
LABELME = {
    "shapes": [
        {"label": "beak", "points": [[10.5, 20]], "group_id": None, "shape_type": "point"},
        {"label": "tail", "points": [[30, 40]], "group_id": None, "shape_type": "point"},
        {"label": "bird", "points": [[50, 40], [1, 2]], "group_id": None, "shape_type": "rectangle"},
    ],
    "imagePath": "first.png",
    "imageData": None,
}


@pytest.fixture
def place(tmp_path):
    for name in ("first.png", "second.png"):
        Image.fromarray(np.zeros((50, 60, 3), np.uint8)).save(tmp_path / name)
    (tmp_path / "wings.tps").write_text(WINGS)
    (tmp_path / "cvat.xml").write_text(CVAT)
    (tmp_path / "labelme.json").write_text(json.dumps(LABELME))
    return tmp_path


def read(place, file, image="first.png"):
    return read_keypoints(place / file, place / image)


def test_tps_counts_from_the_bottom_and_finds_the_picture(place) -> None:
    found = read(place, "wings.tps")
    assert found.points.tolist() == [[10.5, 30], [30.25, 10]]
    assert (found.indices.tolist(), found.length, found.names) == ([0, 1], 3, None)
    other = read(place, "wings.tps", "second.png")
    assert (other.points.tolist(), other.indices.tolist(), other.length) == ([[1, 48]], [0], 2)
    assert read_keypoints(place / "wings.tps#8", size=(60, 100)).points.tolist() == [[1, 98]]
    with pytest.raises(ValueError, match="has 2 objects: 7, 8; say which"):
        read_keypoints(place / "wings.tps", size=(60, 50))
    with pytest.raises(ValueError, match="counts y from the bottom of the picture"):
        read_keypoints(place / "wings.tps#8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LM=3\n1 2\n3 4\n", "LM=3, but only 2 landmarks follow"),
        ("LM=1\n1 2\n3 4\n", "line 3 is one landmark more than LM=1"),
        ("LM=1\n1 two\n", "line 2 must be x y"),
        ("LM3=1\n1 2 3\n", "landmarks in space"),
        ("LM=many\n", "needs a number of points"),
        ("1 2\n", "stands before the first LM="),
        ("", "has no specimen"),
    ],
)
def test_a_bad_tps_file_is_told_with_its_line(tmp_path, text, message) -> None:
    (tmp_path / "a.tps").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_keypoints(tmp_path / "a.tps", size=(9, 9))


def test_labelme_and_cvat(place) -> None:
    found = read(place, "labelme.json")
    assert (found.points.tolist(), found.names, found.box) == ([[10.5, 20], [30, 40]], ("beak", "tail"), (1, 2, 50, 40))
    found = read(place, "cvat.xml")
    assert found.points.tolist() == [[10.5, 20], [30, 40], [31, 41]]
    assert (found.names, found.box) == (("beak", "wing 1", "wing 2"), (1, 2, 50, 40))
    with pytest.raises(ValueError, match=r"has 2 objects for second\.png: 0, 1; say which, as in cvat\.xml#0"):
        read(place, "cvat.xml", "second.png")
    first = read(place, "cvat.xml#0", "second.png")
    assert (first.indices.tolist(), first.length, first.names) == ([0], 2, ("beak", "tail"))
    with pytest.raises(ValueError, match=r"no object with keypoints for third\.png"):
        read(place, "cvat.xml", "third.png")


def test_groups_of_labelme_are_objects(place) -> None:
    shapes = [LABELME["shapes"][0] | {"group_id": group, "points": [[group, group]]} for group in (3, 4)]
    (place / "two.json").write_text(json.dumps({"shapes": shapes}))
    with pytest.raises(ValueError, match="has 2 objects"):
        read(place, "two.json")
    assert read(place, "two.json#4").points.tolist() == [[4, 4]]


def test_no_document_type_is_read_and_depth_is_bounded(tmp_path) -> None:
    laughs = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;">]>'
    for text, message in [
        (laughs + CVAT.partition("?>")[2], "has a document type"),
        ("<annotations>" + "<a>" * 1000, "nested too deeply"),
        ("<annotation><object/></annotation>", "not CVAT's <annotations>"),
        ("<annotations><track/></annotations>", "format for videos"),
        ("<annotations><image>", "cannot read"),
        ('<annotations><image name="a"><points points="1"/></image></annotations>', "must be x,y"),
    ]:
        (tmp_path / "a.xml").write_text(text)
        with pytest.raises(ValueError, match=message):
            read_keypoints(tmp_path / "a.xml", tmp_path / "a.png")


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("a.csv", "156,5;103,5\n1,25;2\n", None),
        ("a.csv", "name;x;y\neye;156,5;103,5\nnose;1,25;2\n", ("eye", "nose")),
        ("a.csv", 'x,y\n"156,5","103,5"\n"1,25",2\n', None),
        ("a.csv", " ,Label,Area,X,Y\n1,wing.jpg,0,156.5,103.5\n2,wing.jpg,0,1.25,2\n", None),
        ("a.txt", "156.5\t103.5\n1.25\t2\n", None),
        ("a.txt", "156.5 103.5\n1.25   2\n", None),
    ],
)
def test_tables_of_imagej_and_of_spreadsheets(tmp_path, name, text, names) -> None:
    (tmp_path / name).write_text(text)
    found = read_keypoints(tmp_path / name)
    assert (found.points.tolist(), found.names) == ([[156.5, 103.5], [1.25, 2]], names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,px,py\neye,1,2\n", "no columns x and y; found name, px, py"),
        ("156,5,103,5\n", "decimal commas need semicolons"),
    ],
)
def test_a_bad_table_is_diagnosed(tmp_path, text, message) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_keypoints(tmp_path / "a.csv")


def test_a_file_of_unknown_form_is_told_what_is_read(tmp_path) -> None:
    (tmp_path / "a.pts").write_text("version: 1")
    with pytest.raises(ValueError, match=r"by its name a\.pts should be JSON: keypoints are .* TPS"):
        read_keypoints(tmp_path / "a.pts")


@pytest.mark.parametrize("file", ["wings.tps", "cvat.xml"])
def test_a_folder_reads_files_of_many_pictures(place, file) -> None:
    for other in {"wings.tps", "cvat.xml", "labelme.json"} - {file}:
        (place / other).unlink()
    found = folder(place, "train", test_share=0.0)
    found += folder(place, "validation", test_share=0.0) if len(found) < 2 else []
    points = {one.name: one.points.tolist() for one in found}
    assert points["first"][0] == ([10.5, 30] if file == "wings.tps" else [10.5, 20])
    assert set(points) == ({"first", "second"} if file == "wings.tps" else {"first", "second_0", "second_1"})


@pytest.mark.parametrize("suffix", [".csv", ".json", ".tps"])
def test_what_is_written_is_read_again(tmp_path, suffix) -> None:
    names = ("eye", "nose, left", "tail")
    whole = Keypoints(np.array([[1.5, 2.25], [3, 4], [5, 6]]), np.arange(3), 3, names)
    path = tmp_path / f"b{suffix}"
    path.write_text(write_keypoints(whole, suffix, "b.png", 50, [0.5, 0.25, 1.0]))
    found = read_keypoints(path, tmp_path / "b.png", (60, 50))
    assert np.allclose(found.points, whole.points)
    assert found.names == (None if suffix == ".tps" else names)
    gap = Keypoints(whole.points[[0, 2]], np.array([0, 2]), 3)
    path.write_text(write_keypoints(gap, suffix, "b.png", 50))
    found = read_keypoints(path, tmp_path / "b.png", (60, 50))
    assert np.allclose(found.points, gap.points)
    assert found.indices.tolist() == [0, 2] if suffix == ".tps" else found.names == ("0", "2")
