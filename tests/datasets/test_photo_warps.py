import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadmatch.datasets import load_crop, photo_warps
from quadmatch.datasets.annotation import read_picture
from quadmatch.datasets.photo_warps import SIDE, draw_view, find_corners, find_photographs
from quadmatch.datasets.warps import draw_warp

SPLITS = {"train": 8, "validation": 2, "test": 4}


@given(st.integers(0, 10_000))
def test_a_warp_and_its_inverse_cancel(seed):
    numbers = np.random.default_rng(seed)
    warp = draw_warp(numbers.random(40))
    points = numbers.uniform(-1, 1, (20, 2))
    np.testing.assert_allclose(warp.invert(warp.apply(points)), points, atol=1e-9)
    grid = np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 15)]), -1).reshape(-1, 2)
    step = 1e-6
    slope = [(warp.apply(grid + d) - warp.apply(grid - d)) / (2 * step) for d in step * np.eye(2)]
    assert (slope[0][:, 0] * slope[1][:, 1] - slope[0][:, 1] * slope[1][:, 0] > 0.05).all()  # never folds


def test_no_strength_is_no_warp():
    warp = draw_warp(np.random.default_rng(0).random(40), 0.0)
    points = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    np.testing.assert_allclose(warp.apply(points), points, atol=1e-12)


def test_splits_have_their_own_photographs():
    kinds = {}
    for split, count in SPLITS.items():
        found = photo_warps(None, split, views=2)
        kinds[split] = {one.category for one in found}
        assert len(kinds[split]) == count
        assert len(found) == 2 * count
    assert len(set().union(*kinds.values())) == sum(SPLITS.values())
    names = [one.name for one in photo_warps(None, "trainval", views=2)]
    assert names == sorted(names)
    assert len(names) == 20


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_truth_is_where_the_picture_shows_it(monkeypatch, number):
    # A photograph that is black but for one spot: the view's spot must be where the truth says.
    view = draw_view("coffee.png", 0, number, 256)
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    rows, columns = np.mgrid[:256, :256] + 0.5
    for corner in find_corners("coffee.png", 12)[::3]:
        spot = np.exp(-((x - corner[0]) ** 2 + (y - corner[1]) ** 2) / 18)
        module = sys.modules["quadmatch.datasets.photo_warps"]
        monkeypatch.setattr(module, "load_photograph", lambda _, spot=spot: np.stack(3 * [spot], -1))
        monkeypatch.setattr(module.View, "_relight", lambda _, picture: picture)
        seen = view()[..., 0].astype(float)
        centre = (columns * seen).sum() / seen.sum(), (rows * seen).sum() / seen.sum()
        np.testing.assert_allclose(view.find(corner[None])[0], centre, atol=0.3)


def test_views_are_a_pure_function_of_the_seed():
    first, second = (photo_warps(None, "test", views=3, seed=5) for _ in range(2))
    other = photo_warps(None, "test", views=3, seed=6)
    for one, two, three in list(zip(first, second, other))[::4]:
        np.testing.assert_array_equal(read_picture(one), read_picture(two))
        np.testing.assert_array_equal(one.points, two.points)
        assert (read_picture(one) != read_picture(three)).any()
    more = photo_warps(None, "test", views=5, seed=5)
    by_name = {one.name: one for one in more}
    assert all((by_name[one.name].points == one.points).all() for one in first)


def test_an_object():
    for one in photo_warps(None, "test", views=2, keypoints=9, size=128):
        crop, points = load_crop(one, 128)
        np.testing.assert_array_equal(crop, read_picture(one))
        np.testing.assert_allclose(points, one.points, rtol=1e-6)
        assert 6 <= len(one.names) <= 9
        assert ((points > 0) & (points < 128)).all()
        gaps = np.linalg.norm(points[:, None] - points[None], axis=-1) + 99 * np.eye(len(points))
        assert gaps.min() > 2
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(read_picture(again), read_picture(one))


def test_the_pictures_lie_in_the_wheel():
    from importlib.metadata import files

    listed = {path.name for path in files("scikit-image") if path.parent.name == "data"}
    assert {one.image.file for split in SPLITS for one in photo_warps(None, split, views=1)} <= listed
    assert find_photographs().is_dir()


def test_options_are_checked(monkeypatch):
    with pytest.raises(ValueError, match="views"):
        photo_warps(views=0)
    with pytest.raises(ValueError, match="split"):
        photo_warps(None, "all")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match="scikit-image"):
        find_photographs()
