from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from quadmatch.bench import first_call, rrwm, sinkhorn
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


def test_first_calls_begin_with_nothing_compiled_and_are_judged_by_the_first(monkeypatch) -> None:
    folders = []

    def run_module(module: str, name: str, *, NUMBA_CACHE_DIR: str) -> dict[str, float]:
        assert module == first_call.__name__
        folder = Path(NUMBA_CACHE_DIR)
        empty = not list(folder.iterdir())
        (folder / "loop").touch()
        folders.append(folder)
        return {"seconds": 7.0 if empty else 1.0}

    monkeypatch.setattr(first_call, "run_module", run_module)
    rows = first_call.run()
    assert [row["ours"] for row in rows] == [7.0, 7.0]
    assert [row["met"] for row in rows] == [True, False]
    assert [row["first_call_of_the_next_process"] for row in rows] == [1.0, 1.0]
    assert not any(folder.exists() for folder in folders)


def test_a_first_call_matches_two_noisy_graphs() -> None:
    result = first_call.make_call("match_graphs")()
    assert len(result) == first_call.NODES  # type: ignore[arg-type]
    assert 0 < result.objective < np.inf  # type: ignore[attr-defined]
    assert len(first_call.make_call("quadratic_assignment")().col_ind) == first_call.NODES  # type: ignore[attr-defined]


def test_one_thread_is_all_that_products_get() -> None:
    before = [read() for read, _ in _find_blas()]
    with one_thread():
        assert [read() for read, _ in _find_blas()] == [1] * len(before)
        assert torch.get_num_threads() == 1
    assert [read() for read, _ in _find_blas()] == before
