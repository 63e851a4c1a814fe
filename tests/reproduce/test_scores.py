"""What a score is worth: the counts behind the figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch.nn import Module

from quadmatch.datasets.photo_pairs import list_photo_pairs
from quadmatch.matcher import Matcher
from quadmatch.reproduce.items import Settings
from quadmatch.reproduce.scores import (
    EDGES,
    count_by_score,
    count_once,
    draw_shares,
    list_shares,
    score_strangers,
    score_views,
)
from quadmatch.result import MatchResult


class NearestPoint(Matcher):
    """Stands in for a matcher: each point goes to the nearest point of the second picture, with score 0.95."""

    def __init__(self):
        Module.__init__(self)

    def match(self, images_a, points_a, images_b, points_b, *, partial):
        assert partial
        results = []
        for a, b in zip(points_a, points_b):
            distance = np.linalg.norm(a[:, None] - b, axis=-1)
            pairs = np.stack([np.arange(len(a)), distance.argmin(1)], 1)
            results.append(MatchResult(pairs, np.full(len(a), 0.95), -distance, 0.0, 1, True))
        return results


def test_pairs_are_counted_by_score() -> None:
    scores, right = np.array([0.0, 0.19, 0.2, 0.95, 1.0]), np.array([False, True, True, True, False])
    counts = count_by_score(scores, right)
    assert counts[:2] == [(2, 1), (1, 1)]
    assert counts[-1] == (2, 1)
    assert sum(pairs for pairs, _ in counts) == 5
    assert len(counts) == len(EDGES) - 1


def test_a_share_needs_enough_pairs() -> None:
    counts = {"one": [(0, 0)] * 7 + [(200, 150)], "other": [(29, 29)] * 8}
    lines = list_shares(counts)
    assert lines[-1] == ["0.9 to 1.0", "75 (200)", "(29)"]
    assert list(draw_shares(counts).axes[0].lines[0].get_xdata()) == [0.95]


def test_what_was_counted_is_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("quadmatch.models.load.load", lambda model: None)
    settings = Settings(tmp_path)
    scored = np.array([0.95, 0.1]), np.array([True, False])
    counts = count_once("one", lambda matcher, settings: scored, "parameters", settings)
    assert counts[0] == (1, 0)
    assert counts[-1] == (1, 1)
    assert count_once("one", None, "parameters", settings) == counts
    with pytest.raises(TypeError):
        count_once("one", None, "other parameters", settings)


def test_no_pair_of_two_different_photographs_is_right(monkeypatch) -> None:
    def draw_alike(count, *, split):  # Nothing is bent, so that the nearest point is the right one.
        return list_photo_pairs(count, split=split, strength=0.0)[:2]

    monkeypatch.setattr("quadmatch.datasets.photo_pairs.list_photo_pairs", draw_alike)
    settings = Settings(Path(), quick=True)
    scores, right = score_views(NearestPoint(), settings)
    assert len(scores) == len(right) > 50
    assert right.all()
    assert not score_strangers(NearestPoint(), settings)[1].any()
