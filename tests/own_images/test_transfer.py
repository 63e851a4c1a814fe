from __future__ import annotations

import numpy as np
import pytest
import torch
from own_pictures import draw_pixels, make_matcher

from quadmatch.datasets.picture import make_picture
from quadmatch.matcher import Matcher
from quadmatch.methods import METHODS
from quadmatch.methods.attention import build_attention
from quadmatch.own_images.elastic import lay_out
from quadmatch.own_images.likeness import find_peak, see
from quadmatch.own_images.transfer import SURE, transfer
from quadmatch.result import MatchResult

GRID = np.stack(np.meshgrid(np.arange(32), np.arange(32)), -1).reshape(-1, 2) * 8.0 + 4
LANDMARKS = np.array([[60.0, 60], [180, 70], [120, 130], [70, 190], [190, 180]])


def look_alike(truth, *, false=(), random=None):
    """Features that are most alike at the true places, and at some others."""
    random = random or np.random.default_rng(0)
    alike = np.exp(-((truth[:, None] - GRID) ** 2).sum(-1) / 200) + random.uniform(0, 0.05, (len(truth), len(GRID)))
    for landmark, place in false:
        alike[landmark] += 1.5 * np.exp(-((GRID - place) ** 2).sum(-1) / 200)
    return alike


@pytest.mark.parametrize("degrees", [0, 35, -50])
def test_landmarks_are_found_in_a_turned_picture(degrees) -> None:
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    truth = (LANDMARKS - 128) @ turn + 128
    laid = lay_out(look_alike(truth), LANDMARKS, GRID)
    assert np.abs(GRID[laid.chosen] - truth).max() <= 8


def test_landmarks_are_found_on_a_thing_that_looks_the_other_way() -> None:
    truth = LANDMARKS * [-1, 1] + [256, 0]
    alike = look_alike(truth)
    for landmark in (0, 2, 4):  # What looks as good lies where it would be without a mirror.
        alike[landmark] += np.exp(-((GRID - LANDMARKS[landmark]) ** 2).sum(-1) / 200)
    laid = lay_out(alike, LANDMARKS, GRID)
    assert np.abs(GRID[laid.chosen] - truth).max() <= 8
    assert {*laid.chosen} <= {*laid.promising}
    assert len(laid.promising) >= 8  # both places of each of the three, too


def test_the_others_correct_a_landmark_that_looks_better_elsewhere() -> None:
    alike = look_alike(LANDMARKS, false=[(2, (20, 240))])
    assert np.abs(GRID[alike[2].argmax()] - LANDMARKS[2]).max() > 50
    laid = lay_out(alike, LANDMARKS, GRID)
    assert np.abs(GRID[laid.chosen] - LANDMARKS).max() <= 8


def test_no_two_landmarks_share_a_place() -> None:
    same = np.repeat(LANDMARKS[:1], 3, axis=0)
    assert len(set(lay_out(look_alike(same), same, GRID).chosen.tolist())) == 3


def test_a_peak_is_found_between_cells() -> None:
    rows, columns = np.mgrid[:8, :8]
    peak = np.array([[3.3, 4.75], [0, 7]])
    maps = np.stack([-((columns - x) ** 2) - (rows - y) ** 2 for x, y in peak])
    assert np.allclose(find_peak(maps, np.array([[3, 4], [1, 6]])), peak)


def test_a_picture_knows_its_own_landmarks_again() -> None:
    pixels = draw_pixels(height=96, width=96)
    landmarks = np.array([[20.0, 22], [70, 25], [48, 50], [24, 76], [75, 70]])
    found = transfer(make_matcher(), pixels, landmarks, pixels)
    assert np.abs(found.points - landmarks).max() < 8
    assert found.points.shape == landmarks.shape
    assert not found.unsure.any()
    other = transfer(make_matcher(), pixels, landmarks, draw_pixels(5, 96, 96))
    assert other.scores.mean() < found.scores.mean()
    assert 0 <= other.scores.min() <= found.scores.max() <= 1
    boxed = transfer(make_matcher(), pixels, landmarks, pixels, box_a=(0, 0, 96, 96), box_b=(0, 0, 96, 96))
    assert np.abs(boxed.points - landmarks).max() < 12


def test_what_a_head_has_learned_is_asked_where_read_outs_are_in_doubt(monkeypatch) -> None:
    pixels, plain = draw_pixels(height=96, width=96), make_matcher()
    landmarks = np.array([[20.0, 22], [70, 25], [48, 50], [24, 76], [75, 70]])
    picture = make_picture(pixels, landmarks, (0, 0, 96, 96), "image_a")
    channels = sum(rows.shape[-1] for rows in see(plain, picture).prepared.entry.values() if rows.ndim > 1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        trained = Matcher(plain.features, build_attention(channels=channels, **METHODS["attention"].small))
    assert len(see(plain, picture).looks) == 1
    assert [rows.shape for rows in see(trained, picture).looks] == [(5, channels), (5, 16)]
    assert trained.training  # it is left as it was
    sure = transfer(trained, pixels, landmarks, pixels)
    assert sure.sure == SURE[0]
    assert np.abs(sure.points - landmarks).max() < 8
    matched = []
    monkeypatch.setattr(trained, "match_prepared", lambda *given, **more: matched.append(given) or decide(*given))
    monkeypatch.setattr("quadmatch.own_images.transfer.SAME", 1.1)
    asked = transfer(trained, pixels, landmarks, pixels)
    assert asked.sure == SURE[1]
    assert len(matched[0][0][0].points) == 5
    assert len({tuple(place) for place in asked.points}) == 5


def decide(prepared, source, target):
    """The first keypoints of both pictures go together."""
    pairs = np.stack([np.arange(len(prepared[0].points))] * 2, 1)
    return [MatchResult(pairs, np.ones(len(pairs)), np.eye(len(pairs)), 0.0, 0, True)]


def test_none_one_and_too_many() -> None:
    pixels = draw_pixels(height=96, width=96)
    assert transfer(make_matcher(), pixels, [], pixels).points.shape == (0, 2)
    assert transfer(make_matcher(), pixels, [[50, 50]], pixels).points.shape == (1, 2)
    with pytest.raises(ValueError, match="at most 500"):
        transfer(make_matcher(), pixels, np.random.default_rng(0).uniform(0, 96, (501, 2)), pixels)
