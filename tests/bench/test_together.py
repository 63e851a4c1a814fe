"""The benchmark of processes that train together compares the same steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.torch import save_file

from quadmatch.bench import together
from quadmatch.bench.training import draw_weights


@pytest.fixture
def started(monkeypatch) -> list[int]:
    """How many processes were asked for, each time; in their place one works here."""
    counts: list[int] = []

    def start(count: int, module: str, words: list[str]) -> None:
        counts.append(count)
        folder, steps, *changes = words
        together.train_rank(Path(folder), int(steps), *changes, "head.options.width=16")

    monkeypatch.setattr(together, "start_processes", start)
    monkeypatch.setattr(together, "CLASSES", 1)
    monkeypatch.setattr(together, "OBJECTS", 2)
    monkeypatch.delenv("RANK", raising=False)
    return counts


def test_processes_are_timed_and_their_parameters_compared(started, tmp_path) -> None:
    save_file(draw_weights(), tmp_path / "vgg16.safetensors")
    row = together.time_two(tmp_path, steps=2, rounds=1)
    assert started == [1, 2]
    assert row["ratio"] == pytest.approx(row["ours"] / row["peer"])
    rows = together.compare_parameters(tmp_path, counts=(3,), steps=2)
    assert started[2:] == [1, 1, 1, 3, 3]
    assert (rows[0]["ours"], rows[0]["met"], rows[0]["same_bits_twice"]) == (0.0, True, True)
    assert rows[0]["largest_change_by_training"] > 0
