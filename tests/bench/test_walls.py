"""The corner of a house that the models are compared on."""

import numpy as np

from quadmatch.bench import photographs
from quadmatch.bench.walls import SIZE, list_wall_pairs, look
from quadmatch.datasets.photo_warps import PHOTOGRAPHS, find_corners, load_photograph
from quadmatch.models.load import DEFAULT, UNTRAINED


def test_landmarks_are_where_the_walls_show_them() -> None:
    walls = PHOTOGRAPHS["test"][:2]
    picture, points = look(walls, 10.0, -5.0, 2.5, 1.0)
    assert picture.shape == (SIZE, SIZE, 3)
    corners = [(file, x, y) for file in walls for x, y in find_corners(file, 15)]
    assert len(points) == len(corners)
    assert ((points > 0) & (points < SIZE)).all()
    # A picture is coarser than the photograph: the mean of a few pixels on either side.
    wanted = np.stack([mean_around(load_photograph(file), x, y, 3) for file, x, y in corners])
    seen = np.stack([mean_around(picture / 255, x, y, 2) for x, y in points])
    right = np.abs(wanted - seen).mean()
    wrong = np.abs(wanted - np.roll(seen, 1, axis=0)).mean()
    assert right < 0.1
    assert right < wrong / 2


def mean_around(pixels: np.ndarray, x: float, y: float, radius: int) -> np.ndarray:
    column, row = int(x), int(y)
    return pixels[row - radius : row + radius + 1, column - radius : column + radius + 1].mean((0, 1))


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
