"""Benchmarks measure what they say, and are refused clearly where something is missing."""

import json

import numpy as np
import pytest
from own_pictures import draw_pixels, make_matcher
from typer.testing import CliRunner

from quadmatch import bench
from quadmatch.bench import batch, graphs, inference, methods, qaplib, report, scaling, turned
from quadmatch.cli import app
from quadmatch.datasets.photo_pairs import PicturePair


def test_every_bench_has_a_run() -> None:
    from importlib import import_module

    for module in bench.BENCHES.values():
        assert callable(import_module(module).run)


def test_heads_are_timed_with_their_own_constraint_and_loss() -> None:
    row = methods.compare("qcgmn_voc", rounds=1)
    assert row["ratio"] == pytest.approx(row["ours"] / row["peer"])
    assert row["met"] is (row["ratio"] >= 0.2)
    assert "qcgmn_voc" in row["name"]


def test_turned_photographs_are_told_by_orientation_and_by_points() -> None:
    pictures = [draw_pixels(seed=seed, height=96, width=96) for seed in range(3)]
    points = np.random.default_rng(1).uniform(8, 88, (12, 2))
    pairs = [PicturePair(str(place), one, points, one, points, np.arange(12)) for place, one in enumerate(pictures)]
    orientation, right = turned.measure_turned(make_matcher(), pairs, "drawn", required=True)
    assert (orientation["ours"], orientation["met"], right["ours"], right["met"]) == (100.0, True, 100.0, True)
    assert right["never_turned"] == 100.0
    assert right["peer"] < 100.0
    assert orientation["size"] == "3 pairs, 36 points"


@pytest.mark.parametrize("pairs", [1, 64])
def test_matches_from_features_are_timed(pairs) -> None:
    row = inference.time_matches("small", make_matcher(), pairs, rounds=1)
    assert row["ours"] > 0
    assert row["met"] is (row["ours"] <= {1: 0.01, 64: 0.15}[pairs])
    assert row["size"].startswith(f"batch {pairs}, ")
    row = inference.time_matches("small", make_matcher(), pairs, 1, (40, 40))
    assert (row["size"], "met" in row) == (f"batch {pairs}, 40 keypoints", False)


def test_correlated_graphs_have_the_share_and_correlation_they_are_asked_for() -> None:
    a, b = graphs.correlate(400, 0.8, seed=3)
    above = np.triu_indices(400, 1)
    for one in (a, b):
        assert np.array_equal(one, one.T)
        assert not one.diagonal().any()
        assert abs(one[above].mean() - 0.5) < 0.01
    assert abs(np.corrcoef(a[above], b[above])[0, 1] - 0.8) < 0.02


def test_correlated_row_counts_right_nodes() -> None:
    row = graphs.match_correlated(20, 1.0, seeds=2)
    assert row["ours"] == 100
    assert row["met"] is True


def test_sparse_row_beats_features_alone() -> None:
    row = graphs.match_sparse(0.002, nodes=60, noise=1.5)
    assert row["ours"] > row["peer"]
    assert row["peak_gigabytes"] < 2


def test_batch_row_compares_both_objectives() -> None:
    rows = batch.run(count=8, least=5, most=7, rounds=1)
    assert len(rows) == 2
    for row in rows:
        assert row["mean_objective"] <= row["mean_objective_of_the_loop"] + 1e-9
        assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["ours_seconds"])


@pytest.mark.parametrize("part", scaling.PARTS)
def test_scaling_calls_run(part: str) -> None:
    assert scaling.make_call(part, 6)() is not None


def _write_instance(folder, name: str, best: str = "12, 1 2 3") -> None:
    folder.mkdir(exist_ok=True)
    distances = "0 1 2\n1 0 3\n2 3 0"
    (folder / f"{name}.dat").write_text(f"3\n\n{distances}\n\n{distances}\n")
    (folder / f"{name}.sln").write_text(f"3 {best}\n")


def test_qaplib_reads_and_compares(tmp_path) -> None:
    _write_instance(tmp_path, "one", "20 1 2 3")
    instance = qaplib.read_qaplib(tmp_path / "one.dat")
    assert instance.best == 20
    assert instance.a[1, 2] == 3
    rows = qaplib.run(tmp_path, seeds=1)
    assert [row["met"] is not None for row in rows] == [True] * 4
    # The least of Σ AB over permutations of this triangle: 2·(1·3 + 2·2 + 3·1).
    assert rows[0]["ours"] == pytest.approx(0, abs=1e-9)
    assert rows[0]["instances_worse_than_FAQ"] == 0


def test_qaplib_names_a_broken_file(tmp_path) -> None:
    (tmp_path / "bad.dat").write_text("3\n1 2 3")
    with pytest.raises(ValueError, match=r"bad\.dat"):
        qaplib.run(tmp_path)
    (tmp_path / "bad.dat").write_text("three")
    with pytest.raises(ValueError, match=r"bad\.dat"):
        qaplib.run(tmp_path)
    (tmp_path / "bad.dat").unlink()
    with pytest.raises(ValueError, match="no QAPLIB instance"):
        qaplib.run(tmp_path)


def test_report_is_written_whole(tmp_path) -> None:
    rows = [
        {"name": "x", "size": "n = 1", "ours_seconds": 0.5, "peer_seconds": 2.0, "ratio": 4.0, "met": True},
        {"name": "y", "size": "n = 2", "ours": 97.123456, "required": 99.0, "met": False, "spread": 0.25},
    ]
    made = {"origin": {"date": "2026-01-02T03:04:05+00:00", "commit": "abc"}, "rows": rows}
    path = report.write_report(made, tmp_path / "out")
    text = path.read_text()
    assert "| x | n = 1 | 0.5 | 2 | 4 |  | yes |" in text
    assert "97.12" in text
    assert "spread 0.25" in text
    assert json.loads(path.with_suffix(".json").read_text()) == made
    assert report.count_met(rows) == (1, 2)


def test_command_refuses_what_it_does_not_know() -> None:
    result = CliRunner().invoke(app, ["bench", "solvers", "--only", "nothing"])
    assert result.exit_code == 1
    assert "sinkhorn" in result.output
    assert CliRunner().invoke(app, ["bench", "solvers", "--only", "qaplib"]).exit_code == 1


def test_command_prints_and_writes(tmp_path) -> None:
    _write_instance(tmp_path / "q", "one", "20 1 2 3")
    words = [
        "bench",
        "solvers",
        "--only",
        "qaplib",
        "--qaplib",
        str(tmp_path / "q"),
        "--json",
        str(tmp_path / "r.json"),
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "r.json").read_text())
    assert written["origin"]["hardware"]
    assert len(written["rows"]) == 4
