from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from own_pictures import POINTS, draw_pixels, make_matcher, write_pair
from PIL import Image
from typer.testing import CliRunner

import quadmatch.models.load
from quadmatch.bench.pictures import write_photographs
from quadmatch.cli import app
from quadmatch.own_images.answer import read_schema

SCHEMA = Draft202012Validator(read_schema("matches"))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(quadmatch.models.load, "load", lambda name="default", precision=None: make_matcher())


def call(*words):
    return CliRunner().invoke(app, ["match", *map(str, words)])


def match(*words):
    """The match as JSON, which fits the schema and is right in itself."""
    done = call(*words, "--out", "-")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    SCHEMA.validate(content)
    check(content)
    return content


def check(content) -> None:
    for side, place in (("a", 0), ("b", 1)):
        matched = [pair[place] for pair in content["pairs"]]
        there = [index for index, point in enumerate(content[f"points_{side}"]) if point is not None]
        assert sorted([*matched, *content[f"unmatched_{side}"]]) == there
        points = [content[f"points_{side}"][index] for index in matched]
        assert [row[2 * place : 2 * place + 2] for row in content["coordinates"]] == points
    assert len(content["scores"]) == len(content["pairs"])


def test_pairs_are_indices_into_the_files(tmp_path) -> None:
    words, order = write_pair(tmp_path / "a ü folder with spaces", "pïcture")
    content = match(*words)
    assert [order[j] for _, j in content["pairs"]] == [i for i, _ in content["pairs"]] == list(range(9))
    assert not content["partial"]
    assert content["size_a"] == [64, 48]
    assert (content["model"], content["image_a"]) == ("default", words[0])


def test_files_are_written_and_a_summary_is_printed(tmp_path) -> None:
    words, _ = write_pair(tmp_path)
    drawn, heat, out = (tmp_path / "new" / name for name in ("m.svg", "heat.png", "matches.json"))
    out.parent.mkdir()
    done = call(*words, "--out", out, "--draw", drawn, "--heat-map", heat, "--model", "vgg16")
    assert done.exit_code == 0, done.output
    SCHEMA.validate(json.loads(out.read_text(encoding="utf-8")))
    page = ElementTree.fromstring(drawn.read_text())
    assert len(page.findall(".//{*}image")) >= 2
    assert heat.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in out.parent.iterdir()) == ["heat.png", "m.svg", "matches.json"]
    shown = call(*words, "--partial")
    assert "pairs of 9 keypoints" in shown.output
    assert shown.output.count("→") == 2 * shown.output.count("score")


def test_a_terminal_sees_what_is_done_and_how_many_pairs_there_are(tmp_path, monkeypatch) -> None:
    words, _ = write_pair(tmp_path)
    words += ["--out", tmp_path / "m.json"]
    done = call(*words)
    assert "9 pairs of 9 keypoints" in done.stderr
    assert "matching" not in done.output
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if it were a terminal
    assert "matching …" in call(*words).stderr
    assert not call(*words, "--quiet").output


def test_detected_keypoints_are_matched_partially_unless_told(tmp_path) -> None:
    (first, second, *_), _ = write_pair(tmp_path)
    content = match(first, second, "--detect", 12)
    assert content["partial"]
    assert content["points_file_a"] is None
    assert content["points_a"] == content["points_b"]
    assert all(i == j for i, j in content["pairs"])
    assert len(content["pairs"]) > 3
    everything = match(first, second, "--detect", 12, "--all", "--no-constraint")
    assert not everything["partial"]
    assert len(everything["pairs"]) == len(everything["points_a"])
    mixed = match(first, second, "--detect", 12, "--points-b", tmp_path / "picture b.json")
    assert mixed["points_file_b"].endswith("b.json")
    assert len(mixed["points_b"]) == 9
    assert mixed["partial"]


def test_boxes_are_corner_width_and_height(tmp_path) -> None:
    words, _ = write_pair(tmp_path)
    content = match(*words, "--box-a", "2,3,40,45", "--box-b", "2 3 40 45")
    assert content["box_a"] == content["box_b"] == [2, 3, 42, 48]
    detected = match(words[0], words[1], "--detect", 8, "--box-a", "0,0,32,48")
    assert all(x <= 32 for x, _ in detected["points_a"])
    assert any(x > 32 for x, _ in detected["points_b"])
    for bad in ("1,2,3", "a,b,c,d", "1,2,0,5", "1,2,3,-4", "nan,1,2,3", "500,500,10,10"):
        done = call(*words, "--box-a", bad)
        assert done.exit_code == 1
        assert "box" in done.output
    assert match(*words, "--box-a", " ")["box_a"] is None


def test_coco_keeps_its_indices(tmp_path) -> None:
    words, _ = write_pair(tmp_path)
    keypoints = [number for x, y in POINTS for number in (x, y, 2)]
    keypoints[3:6] = [0, 0, 0]
    stored = {
        "images": [{"id": 1, "file_name": "picture a.png"}],
        "categories": [{"id": 1, "name": "thing", "keypoints": [f"n{i}" for i in range(9)]}],
        "annotations": [{"id": 5, "image_id": 1, "category_id": 1, "keypoints": keypoints}],
    }
    (tmp_path / "coco.json").write_text(json.dumps(stored))
    content = match(words[0], words[1], "--points-a", tmp_path / "coco.json", "--points-b", words[5])
    assert content["points_a"][1] is None
    assert 1 not in [i for i, _ in content["pairs"]]
    assert len(content["pairs"]) == 8
    assert content["names_a"][2] == "n2"
    assert len(content["unmatched_b"]) == 1


def points_of(folder: Path, points) -> Path:
    path = folder / "points.json"
    path.write_text(json.dumps(np.asarray(points).tolist()))
    return path


@pytest.mark.parametrize(
    ("points", "pairs", "warning"),
    [
        (np.zeros((0, 2)), 0, "there is no keypoint, so that nothing is matched"),
        (POINTS[:1], 1, None),
        (np.repeat(POINTS[:1], 5, 0), 5, "at the place of another"),
        ([[1, 1], [1, 1], [700, -3], [4, 9]], 4, "1 of 4 keypoints lie outside of the picture: 2"),
        (POINTS * [1, 0], 9, None),
    ],
)
def test_odd_keypoints_have_an_answer(tmp_path, points, pairs, warning) -> None:
    words, _ = write_pair(tmp_path)
    content = match(*words[:2], "--points-a", points_of(tmp_path, points), "--points-b", words[5])
    assert len(content["pairs"]) == pairs
    assert warning is None or any(warning in line for line in content["warnings"])
    drawn = call(
        *words[:2], "--points-a", tmp_path / "points.json", "--points-b", words[5], "--draw", tmp_path / "d.pdf"
    )
    assert drawn.exit_code == 0, drawn.output


def test_what_cannot_be_is_said_in_one_line(tmp_path) -> None:
    words, _ = write_pair(tmp_path)
    (tmp_path / "nan.json").write_text("[[1, NaN]]")
    cases = [
        ([words[0], words[1]], "has no keypoints: name a file, or let them be detected"),
        ([words[0], "none.jpg", *words[2:]], r"there is no file none.jpg"),
        ([*words[:3], tmp_path / "nan.json", *words[4:]], "must be finite"),
        ([*words[:3], points_of(tmp_path, POINTS + 1000), *words[4:]], "no keypoint lies in the picture of 64 × 48"),
        ([*words, "--draw", tmp_path / "a.bmp"], ".png, .svg or .pdf"),
        ([*words, "--out", words[3]], "is one of the inputs"),
        ([*words, "--draw", words[0]], "is one of the inputs"),
        ([words[0], words[5], *words[2:]], "cannot read the picture"),
    ]
    for given, reason in cases:
        done = call(*given)
        assert done.exit_code == 1
        assert "error: " in done.output
        assert reason in done.output.replace("\n", " ")
        assert "Traceback" not in done.output
    assert call(*words, "--detect", 0).exit_code == 2


@pytest.mark.parametrize("count", [5001, 10**400])
def test_more_points_than_a_picture_may_have_are_not_looked_for(tmp_path, count) -> None:
    words, _ = write_pair(tmp_path)
    done = call(*words[:2], "--detect", count)
    assert (done.exit_code, done.output) == (1, "error: --detect: a picture may have at most 5,000 keypoints\n")


def test_two_thousand_keypoints_and_very_different_sizes(tmp_path) -> None:
    Image.fromarray(draw_pixels(0, 900, 1200)).save(tmp_path / "large.jpg")
    Image.fromarray(draw_pixels(0, 9, 400)).save(tmp_path / "small.png")
    many = np.random.default_rng(0).uniform(0, 900, (2000, 2))
    few = np.random.default_rng(1).uniform(0, 9, (3, 2))
    (tmp_path / "few.csv").write_text("x,y\n" + "\n".join(f"{x},{y}" for x, y in few))
    words = [tmp_path / "large.jpg", tmp_path / "small.png", "--points-a", points_of(tmp_path, many)]
    content = match(*words, "--points-b", tmp_path / "few.csv")
    assert len(content["pairs"]) == 3
    assert len(content["unmatched_a"]) == 1997
    drawn = call(*words, "--points-b", tmp_path / "few.csv", "--draw", tmp_path / "d.png", "--no-edges")
    assert drawn.exit_code == 0, drawn.output
    assert max(Image.open(tmp_path / "d.png").size) < 3000


@pytest.mark.slow
def test_the_program_matches_photographs_with_the_real_network(tmp_path) -> None:
    first, second, left, right = write_photographs(tmp_path)
    words = [
        "match",
        first,
        second,
        "--points-a",
        left,
        "--points-b",
        right,
        "--out",
        "-",
        "--draw",
        tmp_path / "d.png",
    ]
    done = subprocess.run([sys.executable, "-m", "quadmatch", *words], capture_output=True, text=True, check=True)
    content = json.loads(done.stdout)
    SCHEMA.validate(content)
    check(content)
    assert np.mean([i == j for i, j in content["pairs"]]) > 0.9
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_was_turned_is_matched_in_its_own_coordinates(tmp_path) -> None:
    image, points = tmp_path / "a.png", tmp_path / "a.json"
    pixels = draw_pixels(height=96, width=80)
    spots = np.random.default_rng(1).uniform(8, 72, (12, 2))
    Image.fromarray(pixels).save(image)
    points.write_text(json.dumps(spots.tolist()))
    turned = tmp_path / "b.png"
    Image.fromarray(np.rot90(pixels)).save(turned)  # Anticlockwise, so that 90 degrees clockwise undo it.
    others = np.stack([spots[:, 1], 80 - spots[:, 0]], 1)
    (tmp_path / "b.json").write_text(json.dumps(others.tolist()))
    files = (image, turned, "--points-a", points, "--points-b", tmp_path / "b.json")
    found = match(*files, "--orientation", "auto")
    assert found["orientation"] == "90"
    assert found["pairs"] == [[place, place] for place in range(12)]
    assert np.allclose(found["points_b"], others)
    assert np.allclose([row[2:] for row in found["coordinates"]], others)
    assert match(*files)["orientation"] == "0"
    assert "orientation 90)" in call(*files, "--orientation", "90").output
    wrong = call(*files, "--orientation", "45")
    assert wrong.exit_code != 0
    assert "orientation must be auto or one of 0, 90" in wrong.output
