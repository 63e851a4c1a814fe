"""Two rows are compared on the same pairs, and chance is told from gain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from quadmatch.reproduce import paired
from quadmatch.reproduce.paired import compare_rows
from quadmatch.reproduce.rows import CONSTRAINED, PEERS, list_rows


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch):
    monkeypatch.setattr(paired, "DRAWS", 1000)


def make_result(**right):
    return {"by_pair": {name: {"right": values, "true": [10] * len(values)} for name, values in right.items()}}


def test_the_gain_is_the_mean_over_classes_whatever_their_pairs() -> None:
    first = make_result(car=[10, 10, 10, 10], duck=[5, 5])
    second = make_result(car=[9, 9, 9, 9], duck=[5, 7])
    found = compare_rows([first], [second])
    assert found.gain == pytest.approx((10 - 10) / 2)
    assert (found.better, found.classes) == (1, 2)
    seeds = compare_rows([first, second], [second, second])
    assert seeds.gain == pytest.approx(found.gain / 2)


def test_a_steady_gain_is_seen_and_noise_is_not() -> None:
    random = np.random.default_rng(0)
    base = random.integers(3, 8, 200)
    noise = random.permutation(np.repeat([-1, 1], 100))
    plain = make_result(car=base.tolist())
    steady = compare_rows([make_result(car=(base + (random.random(200) < 0.3)).tolist())], [plain])
    chance = compare_rows([make_result(car=(base + noise).tolist())], [plain])
    assert steady.low > 0
    assert steady.p < 0.01
    assert chance.gain == pytest.approx(0)
    assert chance.low < 0 < chance.high
    assert chance.p > 0.5
    assert str(steady).endswith("better in 1 of 1 classes")
    same = compare_rows([plain], [plain])
    assert (same.gain, same.low, same.high, same.p, same.better) == (0, 0, 0, 1, 0)


def test_pairs_count_by_their_keypoints() -> None:
    first = {"by_pair": {"car": {"right": [1, 9], "true": [1, 9]}}}
    second = {"by_pair": {"car": {"right": [0, 9], "true": [1, 9]}}}
    assert compare_rows([first], [second]).gain == pytest.approx(10)


def test_every_method_of_the_paper_has_a_row_with_the_same_changes() -> None:
    for data in ("willow", "voc"):
        rows = list_rows(data, ("training.steps=5",))
        assert len(rows) == len(PEERS) + 12
        ours = {name: row for name, row in rows.items() if name.endswith(", our decoding")}
        assert len(ours) == 4
        for name, row in ours.items():  # The same run as the row without these words, used otherwise.
            assert row == replace(rows[name.removesuffix(", our decoding")], decoding={}, paper=None)
        assert all(row.changes[:1] == ("training.steps=5",) for row in rows.values())
        assert all(name in rows for pair in CONSTRAINED for name in pair)
