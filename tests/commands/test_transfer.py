from __future__ import annotations

import numpy as np
import pytest
from own_pictures import draw_pixels, make_matcher
from PIL import Image
from typer.testing import CliRunner

import quadmatch.models.load
import quadmatch.own_images.transfer
from quadmatch.cli import app
from quadmatch.datasets.keypoint_files import read_keypoints

TEXT = "name,x,y\nhead,20,22\ntail,70,25\nfoot,48,50\nwing,24,76\n"


@pytest.fixture
def words(tmp_path, monkeypatch):
    monkeypatch.setattr(quadmatch.models.load, "load", lambda name="default", precision=None: make_matcher())
    for side in "ab":
        Image.fromarray(draw_pixels(height=96, width=96)).save(tmp_path / f"{side}.png")
    (tmp_path / "a.csv").write_text(TEXT)
    return [tmp_path / "a.png", tmp_path / "a.csv", tmp_path / "b.png"]


def call(*words):
    return CliRunner().invoke(app, ["transfer", *map(str, words)])


@pytest.mark.parametrize("suffix", [".csv", ".json", ".tps"])
def test_names_and_places_are_carried_over(words, tmp_path, suffix) -> None:
    out, drawn = tmp_path / f"b{suffix}", tmp_path / "t.png"
    done = call(*words, "--out", out, "--draw", drawn)
    assert done.exit_code == 0, done.output
    found = read_keypoints(out, tmp_path / "b.png")
    assert np.abs(found.points - [[20, 22], [70, 25], [48, 50], [24, 76]]).max() < 8
    assert found.names == (None if suffix == ".tps" else ("head", "tail", "foot", "wing"))
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert "4 landmarks in" in done.output


def test_a_summary_marks_what_is_unsure(words, monkeypatch) -> None:
    shown = call(*words).output
    assert all(name in shown for name in ("head", "tail", "foot", "wing"))
    assert "unsure" not in shown
    monkeypatch.setattr(quadmatch.own_images.transfer, "SURE", (1.1, 1.1))
    assert call(*words).output.count("unsure") == 5


def test_bad_words_are_told_before_the_work(words, tmp_path) -> None:
    assert "points are written as .csv, .json, .tps" in call(*words, "--out", tmp_path / "b.xls").output
    assert "one of the inputs" in call(*words, "--out", words[1]).output
    assert "there is no file" in call(words[0], words[1], tmp_path / "none.png").output
    assert "box of image_b" in call(*words, "--box-b", "500,500,10,10").output
