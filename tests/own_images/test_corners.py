from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_pictures import draw_pixels
from PIL import Image

from quadmatch.bench.pictures import measure_repeatability
from quadmatch.datasets.points import MOST
from quadmatch.own_images.corners import NEAREST, SIDE, detect, find_corners


def test_corners_come_back_more_often_than_sift_and_than_chance() -> None:
    shares = measure_repeatability(photographs=("camera.png", "coffee.png"), views=2)
    assert shares["ours"] > 1.2 * shares["SIFT"]
    assert shares["ours"] > 2 * shares["random places"]


@given(st.integers(0, 60), st.integers(1, 90), st.integers(1, 90), st.integers(0, 5))
def test_points_are_apart_inside_and_always_the_same(count, height, width, seed) -> None:
    pixels = draw_pixels(seed, height, width)
    points = find_corners(pixels, count)
    assert len(points) <= count
    assert ((points > 0) & (points < [width, height])).all()
    apart = np.linalg.norm(points[:, None] - points, axis=-1) + 1e9 * np.eye(len(points))
    assert apart.min(initial=1e9) >= NEAREST
    assert np.array_equal(points, find_corners(pixels.copy(), count))


def test_strong_corners_in_one_part_do_not_take_all_points() -> None:
    pixels = draw_pixels(0, 200, 200)
    faint = pixels // 8 + 100
    faint[:100, :100] = pixels[:100, :100]
    points = find_corners(faint, 40)
    assert len(points) == 40
    assert (points < 100).all(1).sum() <= 24
    assert len(find_corners(pixels[:100, :100], 40)) == 40


def test_a_box_limits_where_points_are() -> None:
    points = find_corners(draw_pixels(0, 100, 100), 20, (20.5, 30, 71, 60))
    assert len(points) > 5
    assert ((points > [20, 30]) & (points < [71, 60])).all()
    with pytest.raises(ValueError, match="box"):
        detect(draw_pixels(), 5, (3, 3, 2, 2))


def test_places_do_not_depend_on_how_large_a_picture_is() -> None:
    pixels = np.kron(draw_pixels(3, SIDE // 8, SIDE // 4), np.ones((4, 4, 1), np.uint8))
    large = np.kron(pixels, np.ones((3, 3, 1), np.uint8))
    small, found = (find_corners(one, 30) for one in (pixels, large))
    assert max(pixels.shape) == SIDE
    assert np.allclose(found, 3 * small)


def test_flat_pictures_have_no_points_and_say_so(tmp_path) -> None:
    noise = np.random.default_rng(0).normal(128, 1, (80, 90, 3)).round().astype(np.uint8)
    Image.fromarray(noise).save(tmp_path / "flat.jpg")
    for image in (np.full((50, 60), 90, np.uint8), noise, tmp_path / "flat.jpg", np.zeros((1, 1))):
        with pytest.warns(UserWarning, match="only 0 corners that can be told apart, not 10"):
            assert detect(image, 10).shape == (0, 2)


def test_bad_arguments_are_named(monkeypatch) -> None:
    for count in (-1, 2.5, True, MOST + 1, 10**400, 10**5000):
        with pytest.raises((ValueError, TypeError), match="count"):
            detect(draw_pixels(), count)
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match="opencv-python-headless"):
        detect(draw_pixels(), 5)
