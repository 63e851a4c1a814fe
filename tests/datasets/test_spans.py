from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from own_pictures import draw_pixels, make_matcher

from quadmatch.datasets.picture import make_picture
from quadmatch.datasets.spans import add_whole, compare_spans

MANY = np.random.default_rng(0).uniform(4, 92, (12, 2))
CLOSE = MANY[np.argsort(((MANY - 48) ** 2).sum(1))[:3]]


def show(points, name, box=None):
    return make_picture(draw_pixels(height=96, width=96), points, box, name)


def test_few_close_keypoints_beside_many_are_doubtful() -> None:
    few, many = show(CLOSE, "image_a"), show(MANY, "image_b")
    for pair in ((few, many), (many, few)):
        message = compare_spans(*pair)
        assert message is not None
        assert "image_a: its 3 keypoints span" in message
        assert "--box-a x,y,w,h" in message


@pytest.mark.parametrize("points", [MANY[:7], MANY[:1], MANY[:0], MANY[[MANY[:, 0].argmin(), MANY[:, 0].argmax()]]])
def test_others_are_not(points) -> None:
    assert compare_spans(show(points, "image_a"), show(MANY, "image_b")) is None


def test_a_box_settles_it_and_the_size_of_pictures_counts() -> None:
    many = show(MANY, "image_b")
    assert compare_spans(show(CLOSE, "image_a", (0, 0, 96, 96)), many) is None
    small = replace(show(CLOSE, "image_a"), size=(30, 30))
    assert compare_spans(small, replace(many, size=(96, 96))) is None


def test_doubtful_pairs_are_seen_whole_too() -> None:
    pictures = [show(CLOSE, "image_a"), show(MANY, "image_b"), show(MANY, "image_c", (0, 0, 50, 50))]
    shown, left, right, doubtful = add_whole(pictures, [1, 0, 0], [2, 1, 2])
    assert (left, right, doubtful) == ([1, 0, 0, 3, 3], [2, 1, 2, 4, 5], [1, 2])
    assert [one.keypoints.box for one in shown[3:]] == [(0, 0, 96, 96), (0, 0, 96, 96), (0, 0, 50, 50)]


def test_the_better_of_both_crops_is_taken() -> None:
    matcher, pictures = make_matcher(), [show(CLOSE, "image_a"), show(MANY, "image_b")]
    truth = [np.flatnonzero((point == MANY).all(1))[0] for point in CLOSE]
    tight = matcher.match_prepared(matcher.prepare(pictures), [0], [1])[0]
    best = matcher.match_pictures(pictures, [0], [1])[0]
    assert best.objective <= tight.objective
    assert best.pairs[:, 1].tolist() == truth
    assert tight.pairs[:, 1].tolist() != truth
