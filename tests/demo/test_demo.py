import re

import numpy as np
import pytest
from typer.testing import CliRunner
from web_server import build_quick_matcher

from quadmatch.cli import app
from quadmatch.datasets.photo_pairs import list_photo_pairs, measure
from quadmatch.demo import photographs
from quadmatch.demo.sift import match_sift
from quadmatch.machine import find_version
from quadmatch.result import MatchResult


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
    assert run_demo("--out", str(tmp_path), "--no-photographs", "--quiet") == ""


def test_each_pair_goes_through_the_network_once_for_both_ways() -> None:
    matcher, passes = build_quick_matcher(), []
    matcher.head.register_forward_hook(lambda *_: passes.append(1))
    pairs = list_photo_pairs(1)[:2]
    constrained, free = photographs.match_both_ways(matcher, pairs)
    assert len(passes) == 1
    for ways, constraint in ((constrained, True), (free, False)):
        for pair, result in zip(pairs, ways, strict=True):
            given = pair.picture_a, pair.points_a, pair.picture_b, pair.points_b
            alone = matcher.match(*given, constraint=constraint)
            assert result.pairs.tolist() == alone.pairs.tolist()
            np.testing.assert_allclose(result.assignment, alone.assignment, atol=1e-4)


def make_result(pair, wrong: int) -> MatchResult:
    """A match in which some pairs at the start are shifted by one, so that they are wrong."""
    partners = pair.truth.copy()
    partners[: wrong + 1] = np.roll(partners[: wrong + 1], bool(wrong))
    pairs = np.stack([np.arange(len(partners)), partners], 1)
    return MatchResult(pairs, np.ones(len(pairs)), np.eye(len(pairs)), 0.0, 1, True)


def test_the_pairs_shown_are_those_in_which_the_constraint_changes_most() -> None:
    pairs = list_photo_pairs(3)
    constrained = [make_result(pair, wrong) for pair, wrong in zip(pairs, [0, 0, 0, 0, 5, 0, 0, 0, 0, 1, 1, 1])]
    free = [make_result(pair, wrong) for pair, wrong in zip(pairs, [0, 3, 2, 0, 0, 2, 0, 0, 0, 1, 1, 4])]
    assert photographs.choose_shown(pairs, constrained, free) == [1, 4, 6, 11]


@pytest.mark.slow
def test_photographs_are_matched_above_sift_and_reported(tmp_path) -> None:
    output = run_demo("--out", str(tmp_path))
    constrained, free, sift = (float(found) for found in re.findall(r": ([\d.]+) % right", output))
    assert constrained >= 90
    assert constrained > sift
    assert constrained > free
    precision, recall = re.search(r"precision ([\d.]+) %, recall ([\d.]+) %", output).groups()
    assert 0 < float(precision) <= 100
    assert 0 < float(recall) <= 100
    page = (tmp_path / "index.html").read_text()
    files = re.findall(r'<a href="([^"]+)"><img src="([^"]+)"', page)
    assert len(files) == 10
    assert all(link == shown for link, shown in files)
    assert all((tmp_path / file).read_bytes()[:4] == b"\x89PNG" for file, _ in files)
    counts = [int(found) for found in re.findall(r"<figcaption>[^<]*: (\d+) of \d+ right", page)]
    changed = sum(right != before for right, before in zip(counts[:8:2], counts[1:8:2], strict=True))
    assert changed >= 1  # Of each photograph the pair in which the constraint changes most.
    assert re.findall("<h2>([^<]+)", page)[:4] == ["Camera", "Coffee", "Motorcycle", "Rocket"]
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
