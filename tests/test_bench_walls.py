"""The corner of a house that the models are compared on."""

import numpy as np

from quadmatch.bench import photographs
from quadmatch.bench.walls import SIZE, list_wall_pairs, look
from quadmatch.datasets.photo_warps import PHOTOGRAPHS, SIDE, find_corners, load_photograph
from quadmatch.shipped import DEFAULT, UNTRAINED


def test_landmarks_are_where_the_walls_show_them() -> None:
    walls = PHOTOGRAPHS["test"][:2]
    picture, points = look(walls, 10.0, -5.0, 2.5, 1.0)
    assert picture.shape == (SIZE, SIZE, 3)
    corners = [(file, x, y) for file in walls for x, y in find_corners(file, 15)]
    assert len(points) == len(corners)
    nearby = []
    for (file, x, y), (left, top) in zip(corners, points):
        assert 0 < left < SIZE
        assert 0 < top < SIZE
        # A picture is coarser than the photograph: the mean of a few pixels on either side.
        near = load_photograph(file)[int(y) - 3 : int(y) + 4, int(x) - 3 : int(x) + 4].mean((0, 1))
        seen = picture[int(top) - 2 : int(top) + 3, int(left) - 2 : int(left) + 3].mean((0, 1)) / 255
        nearby.append(np.abs(near - seen).mean())
    assert np.median(nearby) < 0.06
    shifted = [np.abs(load_photograph(f)[:SIDE:16, :SIDE:16].mean((0, 1)) - 0.5).mean() for f in walls]
    assert max(shifted) > 0.06  # The tolerance tells photographs from plain grey.


def test_a_wall_that_faces_away_is_not_drawn() -> None:
    walls = PHOTOGRAPHS["test"][:2]
    front, points = look(walls, 60.0, 0.0, 2.5, 1.0)
    assert len(points) == sum(len(find_corners(file, 15)) for file in walls)
    assert (front != 140).any()
    behind, _ = look(walls, 180.0, 0.0, 2.5, 1.0)
    assert (behind == 140).all()  # Plaster: 0.55 of white.


def test_pairs_are_fixed_and_their_truth_is_true() -> None:
    pairs, again = list_wall_pairs(40.0, draws=1), list_wall_pairs(40.0, draws=1)
    assert len(pairs) == len(PHOTOGRAPHS["test"])
    for pair, other in zip(pairs, again):
        assert np.array_equal(pair.picture_a, other.picture_a)
        assert np.array_equal(pair.points_b, other.points_b)
        assert sorted(pair.truth) == list(range(len(pair.points_a)))
    still = list_wall_pairs(0.0, draws=1)[0]
    moved = np.abs(still.points_a - still.points_b[still.truth]).max()
    assert moved < np.abs(still.points_a - still.points_b).max() / 2


def test_models_are_compared_with_sift() -> None:
    rows = photographs.run(strengths=(1.0,), turns=(20.0,), pairs=1)
    named = {row["name"]: row for row in rows}
    turned = named[f"corner of a house, turned by 20°, model {DEFAULT}: % right beside SIFT"]
    assert turned["ours"] > turned["peer"]
    assert "required" not in turned
    warped = named[f"photo warps, strength 1, model {DEFAULT}: % right beside SIFT"]
    assert warped["required"] == 90.0
    assert warped["met"]
    assert "met" not in named[f"photo warps, strength 1, model {UNTRAINED}: % right beside SIFT"]
