from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from quadmatch.datasets.keypoint_files import read_keypoints
from quadmatch.own_images.answer import read_schema

numbers = st.floats(-1e6, 1e6, allow_nan=False)
lists = st.lists(st.tuples(numbers, numbers), max_size=6)
SCHEMA = Draft202012Validator(read_schema("points"))


def put(folder, name, content):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("ä folder")


@given(lists, st.integers(0, 4))
def test_every_json_form_gives_the_points_and_fits_the_schema(place, points, form) -> None:
    stored = [list(point) for point in points]
    names = [f"n{number}" for number in range(len(points))]
    content = [
        stored,
        {"points": stored, "names": names, "box": [1, 2, 3, 4]},
        {"keypoints": dict(zip(names, stored))},
        {"points": [{"x": x, "y": y, "name": name} for (x, y), name in zip(points, names)], "box": None},
        [{"x": x, "y": y} for x, y in points],
    ][form]
    SCHEMA.validate(content)
    found = read_keypoints(put(place, "points.json", content))
    assert np.array_equal(found.points, np.array(stored).reshape(-1, 2))
    assert found.indices.tolist() == list(range(len(points)))
    assert found.length == len(points)
    assert found.names == (tuple(names) if form in (1, 2, 3) and names else () if form == 1 else None)
    assert found.box == ((1, 2, 3, 4) if form == 1 else None)


@given(lists, st.sampled_from([None, ["x", "y"], ["name", "X", " y "], ["y", "score", "x"]]), st.sampled_from(",;\t"))
def test_csv_with_and_without_heading(place, points, heading, mark) -> None:
    path = place / "points.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=mark)
        if heading:
            writer.writerow(heading)
        columns = [word.strip().lower() for word in heading or ["x", "y"]]
        for number, (x, y) in enumerate(points):
            cells = {"x": x, "y": y, "name": f"n{number}", "score": 0.5}
            writer.writerow([cells[column] for column in columns])
    found = read_keypoints(path)
    assert np.array_equal(found.points, np.array(points).reshape(-1, 2))
    assert (found.names is not None) == ("name" in columns and len(points) > 0)


def make_coco() -> dict:
    skeleton = {"id": 1, "name": "bird", "keypoints": ["beak", "tail", "foot"]}
    return {
        "images": [
            {"id": 7, "file_name": "one/a.jpg"},
            {"id": 8, "file_name": "two/a.jpg"},
            {"id": 9, "file_name": "b.jpg"},
        ],
        "categories": [skeleton],
        "annotations": [
            {"id": 70, "image_id": 7, "category_id": 1, "bbox": [1, 2, 9, 9], "keypoints": [1, 2, 2, 0, 0, 0, 5, 6, 1]},
            {"id": 80, "image_id": 8, "category_id": 1, "keypoints": [9, 9, 2, 8, 8, 2, 7, 7, 2]},
            {"id": 90, "image_id": 9, "category_id": 1, "keypoints": [1, 1, 2] * 3},
            {"id": 91, "image_id": 9, "category_id": 1, "keypoints": [3, 3, 2] * 3},
            {"id": 92, "image_id": 9, "category_id": 1, "iscrowd": 1, "keypoints": [4, 4, 2] * 3},
        ],
    }  # fmt: skip


def test_coco_keeps_the_files_indices_and_chooses_by_picture(tmp_path) -> None:
    path = put(tmp_path, "coco.json", make_coco())
    found = read_keypoints(path, tmp_path / "one" / "a.jpg")
    assert found.points.tolist() == [[1, 2], [5, 6]]
    assert found.indices.tolist() == [0, 2]
    assert (found.length, found.names, found.box) == (3, ("beak", "tail", "foot"), (1, 2, 10, 11))
    assert read_keypoints(path, tmp_path / "two" / "a.jpg").points[0].tolist() == [9, 9]
    assert read_keypoints(f"{path}#91", tmp_path / "b.jpg").points[0].tolist() == [3, 3]
    with pytest.raises(ValueError, match=r"has 2 objects for a\.jpg: 70, 80; say which, as in coco\.json#70"):
        read_keypoints(path, "elsewhere/a.jpg")
    with pytest.raises(ValueError, match=r"2 objects for b\.jpg: 90, 91"):
        read_keypoints(path, "b.jpg")
    with pytest.raises(ValueError, match=r"no picture c\.jpg"):
        read_keypoints(path, "c.jpg")
    with pytest.raises(ValueError, match="no annotation 5"):
        read_keypoints(f"{path}#5", "b.jpg")


def test_a_changed_file_is_read_again(tmp_path) -> None:
    path = put(tmp_path, "p.json", [[1, 2]])
    assert len(read_keypoints(path).points) == 1
    put(tmp_path, "p.json", [[1, 2], [3, 4]])
    assert len(read_keypoints(path).points) == 2


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("p.json", "[[1, 2], [3, NaN]]", r"p\.json: keypoint '1' must be finite"),
        ("p.json", "[[1, 2], [3, 1e999]]", "keypoint '1' must be finite"),
        ("p.json", "[[1, 2], [3]]", "keypoint '1' needs two numbers x, y; got \\[3\\]"),
        ("p.json", "[[1, 2], null]", "keypoint '1' needs two numbers"),
        ("p.json", "[1, 2]", "keypoint '0' needs two numbers"),
        ("p.json", "[[1, 2", r"cannot read .*p\.json"),
        ("p.json", "7", "holds int; keypoints are"),
        ("p.json", {"pts": []}, "has no points"),
        ("p.json", {"images": []}, "looks like COCO"),
        ("p.json", {"objects": []}, "the keypoints of one"),
        ("p.json", {"points": 3}, "must be an object or a list"),
        ("p.json", {"points": [[1, 2]], "names": ["a", "b"]}, "names must be a list with one for each of 1 points"),
        ("p.json", {"points": [[1, 2]], "names": "a"}, "names must be a list"),
        ("p.json", {"points": [], "box": [1, 2, 3]}, "box must be x0, y0, x1, y1"),
        ("p.json", {"points": [], "box": [5, 2, 3, 9]}, "x0 < x1"),
        ("p.csv", "x,y\n1,2\n3,nan\n", r"p\.csv, line 3: keypoint '1' must be finite"),
        ("p.csv", "1,2\n3\n", "line 2 is not"),
        ("p.csv", "1,2,3,4\n", "line 1 is not"),
        ("p.csv", "a,b\n1,2\n", "no columns x and y; found a, b"),
        ("p.csv", "1,5,5;2,5\n", "needs two numbers"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_file_and_entry(tmp_path, name, content, reason) -> None:
    with pytest.raises(ValueError, match=reason):
        read_keypoints(put(tmp_path, name, content), "a.jpg")


def test_files_that_are_not_there_or_not_text(tmp_path) -> None:
    for name in ("none.json", "none.csv", "none.json#3"):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            read_keypoints(tmp_path / name)
    with pytest.raises(ValueError, match="is a folder"):
        read_keypoints(tmp_path)
    for name in ("binary.json", "binary.csv"):
        (tmp_path / name).write_bytes(bytes(range(256)))
        with pytest.raises(ValueError, match="cannot read"):
            read_keypoints(tmp_path / name)
    with pytest.raises(ValueError, match="not a file of several objects"):
        read_keypoints(f"{put(tmp_path, 'p.json', [])}#3")
    put(tmp_path, "hash#3.json", [[1, 2]])
    assert len(read_keypoints(tmp_path / "hash#3.json").points) == 1
