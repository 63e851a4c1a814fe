"""Rows that workers train are those that one process trains."""

from __future__ import annotations

from dataclasses import replace

import pytest
from same_runs import assert_same
from tiny_experiment import tiny_experiment, write_experiment, write_tiny
from typer.testing import CliRunner

from quadmatch.cli import app
from quadmatch.launch.cluster import Cluster
from quadmatch.reproduce import ITEMS
from quadmatch.reproduce.items import Row, Settings, Table
from quadmatch.reproduce.making import reproduce_item
from quadmatch.reproduce.sharing import group_by_run
from quadmatch.reproduce.tables import list_steps


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


@pytest.mark.slow
def test_a_table_made_on_ray_is_that_of_one_process(table, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    trained = replace(table, rows={label: row for label, row in table.rows.items() if row.experiment})
    said: list[str] = []
    made = []
    for name, cluster in (("local", None), ("ray", Cluster(workers=2))):
        settings = Settings(tmp_path / name, say=said.append, cluster=cluster)
        made.append(reproduce_item("tiny", trained, settings))
    assert made[0].lines == made[1].lines
    assert "2 of 2 done" in " ".join(said)
    for run in (tmp_path / "local" / "runs").iterdir():
        assert_same(tmp_path / "ray" / "runs" / run.name, run)


def test_a_figure_is_not_shared_out(tmp_path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "scores", "--engine", "ray", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "scores is a figure, which one process makes" in done.output
