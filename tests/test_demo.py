import re

import numpy as np
import pytest
from typer.testing import CliRunner

from quadmatch.cli import app
from quadmatch.demo import photographs
from quadmatch.demo.photo_pairs import list_photo_pairs, measure
from quadmatch.demo.sift import match_sift
from quadmatch.provenance import find_version


def run_demo(*words: str) -> str:
    result = CliRunner().invoke(app, ["demo", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_graphs_show_what_the_constraint_gains(tmp_path) -> None:
    output = run_demo("--out", str(tmp_path), "--no-photographs")
    counts = [int(found) for found in re.findall(r": (\d+) of 30 right", output)]
    assert counts[1] > counts[0] + 5
    for name in ("graphs.png", "features-alone.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_photographs_are_matched_above_sift_and_reported(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(photographs, "PAIRS", 1)
    output = run_demo("--out", str(tmp_path))
    constrained, free, sift = (float(found) for found in re.findall(r": ([\d.]+) % right", output))
    assert constrained >= 90
    assert constrained > sift
    assert constrained >= free
    precision, recall = re.search(r"precision ([\d.]+) %, recall ([\d.]+) %", output).groups()
    assert 0 < float(precision) <= 100
    assert 0 < float(recall) <= 100
    page = (tmp_path / "index.html").read_text()
    files = re.findall(r'<img src="([^"]+)"', page)
    assert len(files) == 14
    assert all((tmp_path / file).read_bytes()[:4] == b"\x89PNG" for file in files)
    assert "http" not in page
    assert str(tmp_path / "index.html") in output


def test_photo_pairs_are_fixed_and_their_truth_is_true() -> None:
    pairs, again = list_photo_pairs(1), list_photo_pairs(1)
    for pair, other in zip(pairs, again, strict=True):
        assert np.array_equal(pair.points_b, other.points_b)
        assert np.array_equal(pair.picture_a, other.picture_a)
        # The truth is where the warps say that the points went, to a hundredth of a pixel.
        assert np.abs(pair.follow(pair.points_a) - pair.points_b[pair.truth]).max() < 0.01
    perfect = [match_sift(one.picture_a, one.points_a, one.picture_a, one.points_a) for one in pairs]
    for pair, result in zip(pairs, perfect):
        assert result.pairs[:, 1].tolist() == list(range(len(pair.truth)))
    sift = [match_sift(one.picture_a, one.points_a, one.picture_b, one.points_b) for one in pairs]
    assert 40 < measure(pairs, sift) < 100


def test_near_points_are_counted_once() -> None:
    near = np.array([[True, True, False], [True, False, False], [False, False, False]])
    assert photographs.count_pairs(near) == 2


def test_version_and_help() -> None:
    assert find_version() in CliRunner().invoke(app, ["--version"]).output
    shown = CliRunner().invoke(app, ["--help"]).output
    for command in ("bench", "data", "demo", "evaluate", "export", "match", "reproduce", "serve", "train"):
        assert command in shown
