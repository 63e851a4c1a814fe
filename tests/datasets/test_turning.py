from __future__ import annotations

import numpy as np
import pytest
from own_pictures import draw_pixels, make_matcher

from quadmatch.datasets.picture import make_picture
from quadmatch.datasets.turning import ORIENTATIONS, list_orientations, list_tries, turn_picture

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (24, 40, 3), dtype=np.uint8)
POINTS = np.stack([RANDOM.integers(0, 40, 9), RANDOM.integers(0, 24, 9)], 1) + 0.5
INVERSE = {"90": "270", "270": "90"}
"""Of turns; a turn twice by half, and every mirror image of a mirror image, is the picture itself."""


def look(picture, points):
    """The colours at some places, each in the middle of a pixel."""
    columns, rows = np.floor(points).astype(int).T
    return picture[rows, columns]


@pytest.mark.parametrize("name", ORIENTATIONS)
def test_keypoints_and_boxes_stay_where_they_were_in_the_picture(name) -> None:
    x0, y0, x1, y1 = 6, 3, 21, 17
    picture = make_picture(PIXELS, POINTS, (x0, y0, x1, y1))
    turned = turn_picture(picture, name)
    assert (look(turned.image, turned.keypoints.points) == look(PIXELS, POINTS)).all()
    assert turned.image.shape == (PIXELS.shape if name[-2:] not in ("90", "70") else (40, 24, 3))
    left, top, right, bottom = (int(side) for side in turned.keypoints.box)
    inside = turned.image[top:bottom, left:right].reshape(-1, 3)
    assert sorted(inside.tolist()) == sorted(PIXELS[y0:y1, x0:x1].reshape(-1, 3).tolist())
    back = turn_picture(turned, INVERSE.get(name, name))
    assert (back.image == PIXELS).all()
    assert np.allclose(back.keypoints.points, POINTS)
    assert back.keypoints.box == (x0, y0, x1, y1)


def test_names_say_which_way_it_is_turned() -> None:
    picture = make_picture(PIXELS, POINTS)
    assert turn_picture(picture, "0") is picture
    assert (turn_picture(picture, "90").image == np.rot90(PIXELS, -1)).all()
    assert (turn_picture(picture, "mirror").image == PIXELS[:, ::-1]).all()
    assert (turn_picture(picture, "mirror-90").image == np.rot90(PIXELS[:, ::-1], -1)).all()
    assert len({turn_picture(picture, name).image.tobytes() for name in ORIENTATIONS}) == 8
    assert list_orientations(270) == ("270",)
    assert list_orientations("auto") == ORIENTATIONS
    with pytest.raises(ValueError, match=r"orientation must be auto or one of 0, 90, .*; got 45"):
        list_orientations(45)


def test_each_view_is_made_once_however_many_pairs_need_it() -> None:
    pictures = [make_picture(PIXELS, POINTS[:size]) for size in (9, 8, 7)]
    views, tries = list_tries(pictures, [0, 1, 2], [2, 2, 1], ["auto"] * 3)
    assert len(views) == 3 + 2 * 7
    assert [one.pair for one in tries] == [0] * 8 + [1] * 8 + [2] * 8
    assert [one.orientation for one in tries] == [*ORIENTATIONS] * 3
    assert [one.source for one in tries] == [0] * 8 + [1] * 8 + [2] * 8
    assert [one.target for one in tries[:8]] == [one.target for one in tries[8:16]] == [2, *range(3, 10)]
    assert list_tries(pictures, [0], [1], ["0"])[0] == pictures
    views, tries = list_tries(pictures, [0, 1], [2, 2], ["0", 90])
    assert len(views) == 4
    assert [(one.pair, one.target, one.orientation) for one in tries] == [(0, 2, "0"), (1, 3, "90")]


@pytest.mark.parametrize("name", ORIENTATIONS)
def test_a_turned_picture_is_turned_back_and_told(name) -> None:
    matcher, pixels = make_matcher(), draw_pixels(height=96, width=96)
    points = np.random.default_rng(1).uniform(8, 88, (12, 2))
    given = turn_picture(make_picture(pixels, points), INVERSE.get(name, name))
    order = np.random.default_rng(2).permutation(12)
    result = matcher.match(pixels, points, given.image, given.keypoints.points[order], orientation="auto")
    assert result.orientation == name
    assert result.to_json()["orientation"] == name
    assert order[result.pairs[:, 1]].tolist() == list(range(12))
    same = matcher.match(pixels, points, given.image, given.keypoints.points[order], orientation=name)
    assert (same.pairs == result.pairs).all()
    assert matcher.match(pixels, points, pixels, points).orientation == "0"
