"""Files that break readers: each is refused in one line that names it, at once and in bounded memory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import Result
from own_pictures import write_pair
from PIL import Image
from typer.core import TyperGroup
from typer.testing import CliRunner

from quadmatch import cli
from quadmatch.datasets import pixels, texts
from quadmatch.datasets.boxes import check_box
from quadmatch.datasets.keypoint_files import read_keypoints
from quadmatch.datasets.picture import make_picture
from quadmatch.datasets.points import MOST, check_points
from quadmatch.datasets.texts import read_text
from quadmatch.own_images.pair_lists import read_pairs

HUGE = 10**400
DEEP = "[" * 100_000 + "]" * 100_000


def make_coco(**changes: object) -> dict:
    one = {"id": 1, "image_id": 1, "category_id": 1, "keypoints": [1, 2, 2]} | changes
    category = {"id": 1, "name": "bird", "keypoints": changes.get("names", ["beak"])}
    return {"images": [{"id": 1, "file_name": "a.png"}], "categories": [category], "annotations": [one]}


POINTS = {
    "a number of 400 digits": json.dumps([[1, 2], [HUGE, 3]]),
    "a number of 5,000 digits": f"[[1, {'9' * 5000}]]",
    "a box of 400 digits": json.dumps({"points": [[1, 2]], "box": [0, 0, HUGE, 5]}),
    "a name's point of 400 digits": json.dumps({"points": {"nose": [HUGE, 1]}}),
    "keypoints of COCO of 400 digits": json.dumps(make_coco(keypoints=[HUGE, 1, 2])),
    "a box of COCO of 400 digits": json.dumps(make_coco(bbox=[1, 2, HUGE, 4])),
    "an id that is a list": json.dumps(make_coco(id=[1])),
    "a picture's id that is an object": json.dumps(make_coco(image_id={})),
    "a category's id that is a list": json.dumps(make_coco(category_id=[])),
    "names that are a number": json.dumps(make_coco(names=5)),
    "lists in lists": DEEP,
    "objects in objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "half a character": json.dumps({"points": {"\ud800": [1, 2], "b": [3, 4]}}),
    "half a character in COCO's names": json.dumps(make_coco(names=["\udfff"])),
    "no text": b"\xff\xfe\x00[",
}


@pytest.mark.parametrize("name", POINTS)
def test_a_file_of_points_is_refused_in_one_line(tmp_path, name: str) -> None:
    words, _ = write_pair(tmp_path)
    content = POINTS[name]
    path = tmp_path / "points.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    done = CliRunner().invoke(
        cli.app, ["match", str(tmp_path / "a.png"), words[1], "--points-a", str(path), *words[4:]]
    )
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert done.output.startswith("error: ")
    assert done.output.count("\n") == 1
    assert str(path) in done.output
    assert len(done.output) < 500


def test_a_byte_order_mark_is_no_fault(tmp_path) -> None:
    path = tmp_path / "points.json"
    path.write_bytes(b"\xef\xbb\xbf[[1, 2], [3, 4]]")
    assert read_keypoints(path).points.tolist() == [[1, 2], [3, 4]]
    pairs = tmp_path / "pairs.csv"
    pairs.write_bytes(b"\xef\xbb\xbfimage_a,image_b\na.png,b.png\n")
    assert read_pairs(pairs)[0].a[0] == "a.png"


MANY = {
    "a.json": "[" + "[1,2]," * MOST + "[1,2]]",
    "named.json": json.dumps({"points": {str(number): [1, 2] for number in range(MOST + 1)}}),
    "listed.json": json.dumps([{"x": 1, "y": 2}] * (MOST + 1)),
    "coco.json": json.dumps(make_coco(keypoints=[1, 2, 0] * (MOST + 1), names=["a"] * (MOST + 1))),
    "labelme.json": json.dumps({"shapes": [{"points": [[1, 2]], "shape_type": "point"}] * (MOST + 1)}),
    "a.csv": "1,2\n" * (MOST + 1),
    "headed.csv": "x,y\n" + "1,2\n" * (MOST + 1),
    "a.tps": f"LM={MOST + 1}\n",
    "one.xml": f'<annotations><image><points points="{"1,2;" * MOST}1,2"/></image></annotations>',
    "all.xml": "<annotations><image>" + '<points points="1,2"/>' * (MOST + 1) + "</image></annotations>",
}


@pytest.mark.parametrize("name", MANY)
def test_keypoints_of_a_picture_have_a_bound(tmp_path, name: str) -> None:
    path = tmp_path / name
    path.write_text(MANY[name])
    with pytest.raises(ValueError, match=rf"{name}.* has 5,001 keypoints; a picture may have 5,000: keep only"):
        read_keypoints(path)


def test_as_many_keypoints_as_there_may_be_are_read(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,2\n" * MOST)
    assert len(read_keypoints(path).points) == len(check_points([[1, 2]] * MOST)) == MOST
    for points in ([[1, 2]] * (MOST + 1), np.ones((MOST + 1, 2)), torch.ones(MOST + 1, 2)):
        with pytest.raises(ValueError, match=r"points of image has 5,001 keypoints"):
            make_picture(None, points)


@pytest.mark.parametrize("line", ["1,2\n", "[1,2],"])
def test_a_file_full_of_keypoints_is_refused_before_they_are_numbers(tmp_path, monkeypatch, line: str) -> None:
    path = tmp_path / ("a.csv" if "\n" in line else "a.json")
    path.write_text(line * 10**6 if "\n" in line else "[" + line * 10**6 + "[1,2]]")
    for module in ("keypoint_tables", "points"):
        monkeypatch.setattr(f"quadmatch.datasets.{module}.parse_number", None)
    monkeypatch.setattr("quadmatch.datasets.points.np", None)
    with pytest.raises(ValueError, match=r"has (999,999|1,000,001) keypoints"):
        read_keypoints(path)


def test_texts_have_a_bound(tmp_path, monkeypatch) -> None:
    path = tmp_path / "points.json"
    with path.open("wb") as file:  # 120 MB that take no room on the disk
        file.truncate(120 * 10**6)
    for read in (read_keypoints, read_pairs):
        with pytest.raises(ValueError, match=r"points\.json: it has more than 64 MB; keep only"):
            read(path)
    path.write_text("[[1, 2]]")
    assert read_text(path, 8) == "[[1, 2]]"
    with pytest.raises(ValueError, match="more than"):
        read_text(path, 7)
    assert texts.LARGEST < 120 * 10**6


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_pictures_of_what_is_no_number_are_refused(tmp_path, value: float) -> None:
    values = np.random.default_rng(0).random((6, 7)).astype(np.float32)
    path = tmp_path / "float.tif"
    Image.fromarray(values).save(path)
    assert pixels.read_pixels(path).max() > 200
    values[2, 3] = value
    Image.fromarray(values).save(path)
    with pytest.raises(ValueError, match=r"image a: .*float\.tif.*NaN or infinity"):
        pixels.read_pixels(path, "image a")
    with pytest.raises(ValueError, match=r"image a: .*NaN or infinity"):
        pixels.read_pixels(Image.fromarray(values), "image a")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_huge_picture_is_refused_before_it_is_decoded(tmp_path, monkeypatch) -> None:
    path = tmp_path / "huge.png"
    Image.new("1", (13_000, 13_000)).save(path)

    def fail(*arguments: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(Image.Image, "convert", fail)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", fail)
    for read in (pixels.read_pixels, pixels.read_size, pixels.is_plain):
        with pytest.raises(ValueError, match=r"huge\.png: it has 13000 × 13000 pixels, more than 80 million; make it"):
            read(path)


def test_what_is_no_regular_file_is_no_picture(tmp_path) -> None:
    """Nobody ever writes into this pipe: whoever opened it would wait for ever."""
    pipe, loop = tmp_path / "pipe.png", tmp_path / "loop.png"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path in (pipe, tmp_path):
        with pytest.raises(ValueError, match=r"image: cannot read the picture .* not a regular file"):
            pixels.read_pixels(path)
    words, _ = write_pair(tmp_path / "pair")
    for path in (loop, "~nobody-of-this-name/a.png"):
        done = CliRunner().invoke(cli.app, ["match", str(path), *words[1:], "--out", str(tmp_path / "out.json")])
        assert isinstance(done.exception, SystemExit)
        assert done.output.count("\n") == 1
        assert str(path) in done.output
    done = CliRunner().invoke(cli.app, ["match", *words[:2], "--points-a", str(loop), *words[4:]])
    assert isinstance(done.exception, SystemExit)
    assert str(loop) in done.output


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.json", "pipe.tps", "pipe.xml", "pipe"])
def test_what_is_no_regular_file_is_no_text(tmp_path, name: str) -> None:
    pipe = tmp_path / name
    os.mkfifo(pipe)
    words, _ = write_pair(tmp_path / "pair")
    for given in (["match", *words[:2], "--points-a", str(pipe), *words[4:]], ["match-many", str(pipe), "--out", "x"]):
        done = CliRunner().invoke(cli.app, given)
        assert isinstance(done.exception, SystemExit)
        assert done.output.startswith(f"error: cannot read {pipe}: it is not a regular file")
        assert done.output.count("\n") == 1
    with pytest.raises(ValueError, match=r"zero: it is not a regular file"):
        read_text(Path("/dev/zero"))


def test_masks_are_not_ignored() -> None:
    points = np.ma.masked_greater(np.array([[1.0, 2.0], [3.0, 400.0]]), 100)
    for given in (points, list(points), [list(point) for point in points]):
        with pytest.raises(ValueError, match="points has masked entries"):
            check_points(given)
    with pytest.raises(ValueError, match=r"image a has masked pixels.*filled"):
        pixels.read_pixels(np.ma.masked_equal(np.eye(5, dtype=np.uint8), 1), "image a")


@pytest.mark.parametrize("box", [3, None, "abcd", (1, 2, 3), (0, 0, HUGE, 1), (0, 0, "a", 1), (0, 0, np.nan, 1)])
def test_a_box_of_anything_else_is_named(box: object) -> None:
    with pytest.raises(ValueError, match="box of a needs"):
        check_box(box, "box of a")


def test_the_door_tells_a_file_from_a_bug(monkeypatch) -> None:
    def run(error: Exception, module: str) -> Result:
        exec("def invoke(*words): raise error", space := {"__name__": module, "error": error})
        monkeypatch.setattr(TyperGroup, "invoke", space["invoke"])
        return CliRunner().invoke(cli.app, ["match"])

    for error, module in (
        (MemoryError(), "quadmatch.matcher"),
        (RecursionError("too deep"), "json.decoder"),
        (RuntimeError("a loop"), "pathlib"),
        (KeyError("odd"), "PIL.TiffImagePlugin"),
    ):
        done = run(error, module)
        assert isinstance(done.exception, SystemExit)
        assert done.output.startswith("error: ")
        assert len(done.output) > len("error: \n")
    with pytest.raises(RuntimeError) as full:
        torch.empty(2**60, dtype=torch.uint8)
    for kind in (full.value, torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")):
        done = run(kind, "quadmatch.matcher")
        assert isinstance(done.exception, SystemExit)
        assert done.output.startswith("error: the memory of this machine does not suffice: fewer keypoints")
        assert done.output.count("\n") == 1
    for bug in (RuntimeError("shapes"), KeyError("odd"), RecursionError(), AssertionError()):
        assert run(bug, "quadmatch.matcher").exception is bug
