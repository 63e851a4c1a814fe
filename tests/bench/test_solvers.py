from __future__ import annotations

import torch

from quadmatch.bench import rrwm, sinkhorn
from quadmatch.bench.measurement import _find_blas, one_thread

COLUMNS = {"name", "size", "ratio", "required", "met", "compared_with"}


def test_sinkhorn_rows_compare_equal_results() -> None:
    rows = sinkhorn.run(batch=2, sizes=(3, 10), rounds=1)
    assert [row["size"] for row in rows] == ["batch 2, n = 3", "batch 2, n = 10"]
    assert [row["required"] for row in rows] == [None, 15.0]
    for row in rows:
        assert row.keys() >= COLUMNS | {"ours_seconds", "peer_seconds", "warm_up_seconds"}
        assert isinstance(row["largest_difference"], float)
        assert row["largest_difference"] <= 1e-4


def test_rrwm_rows_compare_time_objective_and_memory() -> None:
    threads = torch.get_num_threads()
    speed, quality, memory = rrwm.run(batch=4, size=30, rounds=1)
    assert torch.get_num_threads() == threads
    assert all(row.keys() >= COLUMNS for row in (speed, quality, memory))
    assert quality["met"]
    assert speed["required"] == 20
    assert memory["peer"] > memory["ours"] >= 0  # type: ignore[operator]


def test_one_thread_is_all_that_products_get() -> None:
    before = [read() for read, _ in _find_blas()]
    with one_thread():
        assert [read() for read, _ in _find_blas()] == [1] * len(before)
        assert torch.get_num_threads() == 1
    assert [read() for read, _ in _find_blas()] == before
