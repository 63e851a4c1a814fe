"""Rows that workers train are those that one process trains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from same_runs import assert_same
from tiny_experiment import tiny_experiment, write_experiment, write_tiny
from typer.testing import CliRunner

from quadmatch.cli import app
from quadmatch.features.cache import _read_header
from quadmatch.models.runs import create_run
from quadmatch.reproduce import ITEMS
from quadmatch.reproduce.items import Row, Settings, Table
from quadmatch.reproduce.reuse import read_row
from quadmatch.reproduce.sharing import SHARES, fill_share, group_by_run, list_needs
from quadmatch.reproduce.tables import list_steps
from quadmatch.training.fit import build_trainer


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Table:
    tiny = write_tiny(tmp_path_factory.mktemp("tiny"))
    experiment = str(write_experiment(tiny_experiment(tiny), tiny / "small.toml"))
    rows = {"ours": Row(experiment), "used without": Row(experiment, constraint=False), "none": Row(model="vgg16")}
    return replace(ITEMS["willow"], split="validation", pairs=5, seeds=2, rows=rows)


def test_one_run_is_trained_by_one_worker(table, tmp_path) -> None:
    settings = Settings(tmp_path)
    groups = group_by_run(table, list_steps(table, settings), settings)
    assert list(groups.values()) == [
        [("ours", 0), ("used without", 0)],
        [("ours", 1), ("used without", 1)],
        [("none", None)],
    ]


def test_features_that_rows_share_are_one_need(table, tmp_path) -> None:
    settings = Settings(tmp_path)
    needs = list(list_needs(table, settings))
    assert len(needs) == 2
    assert len(set(needs)) == 1
    changed = replace(table.rows["ours"], changes=("training.flip=true", "head.options.width=8"))
    assert len(set(list_needs(replace(table, rows=dict(table.rows, flipped=changed)), settings))) == 2


def test_what_workers_compute_is_all_that_training_looks_at(table, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("QUADMATCH_CACHE", str(tmp_path))
    changes = (
        "training.flip=true",
        "training.outliers=2",
        "training.views=0.5",
        "training.copies=0.5",
        "training.between=0.5",
        f"features.cache={tmp_path / 'kept'}",
    )
    row, settings = replace(table.rows["ours"], changes=changes), Settings(tmp_path)
    (need,) = list_needs(replace(table, rows={"hard": row}), settings)
    assert sum(fill_share(need, part) for part in range(SHARES)) > 0
    before, experiment = sorted(count_entries(tmp_path / "kept")), read_row(row, 0, settings)
    build_trainer(create_run(tmp_path / "run", experiment, experiment.features.precision, 1), lambda line: None)
    assert sorted(count_entries(tmp_path / "kept")) == before


def count_entries(folder: Path) -> list[str]:
    """Names of all entries of a store's shards; one that was computed twice is there twice."""
    return [name for shard in folder.glob("*/*.safetensors") for name in _read_header(shard)]


@pytest.mark.ray
def test_a_table_made_on_ray_is_that_of_one_process(table, nodes, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    trained = replace(table, rows={label: row for label, row in table.rows.items() if row.experiment})
    monkeypatch.setitem(ITEMS, "tiny", trained)
    said = []
    for name, words in (("local", []), ("ray", ["--engine", "ray", "--address", nodes.address, "--workers", "2"])):
        monkeypatch.setenv("QUADMATCH_CACHE", str(tmp_path / name / "usual"))
        changes = f"features.cache={tmp_path / name / 'cache'}"
        done = CliRunner().invoke(app, ["reproduce", "tiny", "--set", changes, "--out", str(tmp_path / name), *words])
        assert done.exit_code == 0, done.output
        said.append(done.output)
    assert "features of 45 objects computed, each by one worker" in said[1]
    assert "2 of 2 done" in said[1]
    assert (tmp_path / "ray" / "tiny.md").read_bytes() == (tmp_path / "local" / "tiny.md").read_bytes()
    expected, found = (sorted(count_entries(tmp_path / name / "cache")) for name in ("local", "ray"))
    assert found == expected
    assert len(set(found)) == len(found)
    for run in (tmp_path / "local" / "runs").iterdir():
        assert_same(tmp_path / "ray" / "runs" / run.name, run)


def test_a_folder_that_cannot_be_written_is_known_before_ray_is_started(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("quadmatch.launch.cluster._connect", lambda *_: pytest.fail("nothing is to be started"))
    done = CliRunner().invoke(app, ["reproduce", "willow", "--engine", "ray", "--out", str(tmp_path / "file" / "out")])
    assert done.exit_code == 1
    assert "Not a directory" in done.output
    assert len(done.output.splitlines()) == 1


def test_a_figure_is_not_shared_out(tmp_path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "scores", "--engine", "ray", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "scores is a figure, which one process makes" in done.output
