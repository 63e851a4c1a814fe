"""The benchmark of engines compares engines that write the same."""

from __future__ import annotations

import pytest
from tiny_experiment import tiny_experiment, write_tiny

from quadmatch.bench import bulk
from quadmatch.launch.cluster import Cluster, join_cluster
from quadmatch.training.fit import fit


def test_pictures_are_paired_in_a_ring(tmp_path) -> None:
    pairs = bulk.write_pictures(tmp_path, 3)
    assert [(pair.number, pair.a[0], pair.b[0]) for pair in pairs] == [
        (1, "0.jpg", "1.jpg"),
        (2, "1.jpg", "2.jpg"),
        (3, "2.jpg", "0.jpg"),
    ]
    assert all((tmp_path / name).is_file() for pair in pairs for name in pair.a[:2])


@pytest.mark.ray
def test_workers_are_compared_on_the_same_work(nodes, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    fit(tiny_experiment(write_tiny(tmp_path), ["training.steps=1"]), tmp_path / "run", say=lambda _: None, board=False)
    with join_cluster(Cluster(nodes.address), 0):  # The benchmark stays on the cluster that it finds.
        (row,) = bulk.run(pictures=5, model=str(tmp_path / "run"))
    assert row["same_bytes"]
    assert row["pictures_computed"] == 5
    assert row["ratio"] == row["peer"] / row["ours"]
    assert row["required"] == 1.8
