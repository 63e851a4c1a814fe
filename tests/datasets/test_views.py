from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from quadmatch.datasets.annotation import Annotation, frame_points
from quadmatch.datasets.mirroring import add_mirrored
from quadmatch.datasets.photo_warps import SIDE, locate_corners
from quadmatch.datasets.views import (
    KEPT,
    MARGIN,
    SEPARATION,
    VIEW,
    VIEWS,
    ObjectView,
    load_object,
    make_copies,
    make_views,
    narrow,
)
from quadmatch.datasets.warps import draw_warp
from quadmatch.features.store_features import name_entry


def draw_object(folder, number: int, *, plain: bool = False) -> Annotation:
    """An object whose picture has coloured squares, or nothing."""
    random = np.random.default_rng(number)
    pixels = np.full((120, 160, 3), 100, dtype=np.uint8)
    for x, y in () if plain else random.integers(10, 100, (40, 2)):
        pixels[y : y + 9, x : x + 9] = random.integers(0, 256, 3)
    path = folder / f"{number}.png"
    Image.fromarray(pixels).save(path)
    return Annotation(f"thing/{number}", "thing", path, (5.0, 5.0, 115.0, 110.0), ("a",), np.array([[20.0, 20.0]]))


@pytest.fixture
def objects(tmp_path) -> list[Annotation]:
    return [draw_object(tmp_path, number) for number in range(4)]


def test_one_name_is_one_place_of_the_object(objects) -> None:
    views = make_views(objects, 4, 128)
    assert len(views) == 4 * VIEWS
    for one in views:
        assert one.category.startswith(VIEW)
        assert isinstance(one.image, ObjectView)
        corners = locate_corners(load_object(one.image.shown), 40, margin=MARGIN, separation=SEPARATION)
        place = (one.image.warp.apply(one.points * 2 / 128 - 1) + 1) * SIDE / 2
        np.testing.assert_allclose(place, corners[[int(name) for name in one.names]], atol=1e-6)
        assert one.image().shape == (128, 128, 3)
    assert len({one.category for one in views}) == 4


def test_views_have_points_that_others_do_not_have(objects) -> None:
    views = make_views(objects, 4, 128)
    for first, second in zip(views[::VIEWS], views[1::VIEWS]):
        assert set(first.names) ^ set(second.names)
        assert len(set(first.names) & set(second.names)) >= 3
    assert KEPT < 1


def test_objects_are_chosen_by_name(objects) -> None:
    names = [[one.name for one in make_views(order, 2)] for order in (objects, objects[::-1])]
    assert names[0] == names[1]
    assert len(names[0]) == 2 * VIEWS
    with pytest.raises(ValueError, match="at least one picture, got 0"):
        make_views(objects, 0)


def test_what_has_no_corners_is_passed_over(tmp_path) -> None:
    assert not make_views([draw_object(tmp_path, 0, plain=True)], 1)


def test_the_name_of_a_view_needs_no_drawing(objects, monkeypatch) -> None:
    views = make_views(objects, 4)
    monkeypatch.setattr(ObjectView, "__call__", lambda _: pytest.fail("was drawn"))
    names = [name_entry(one) for one in views]
    assert len(set(names)) == len(views)
    assert names == [name_entry(one) for one in make_views(objects, 4)]
    moved = replace(objects[0], box=(6.0, 5.0, 115.0, 110.0))
    assert not set(names) & {name_entry(one) for one in make_views([moved], 1)}


@pytest.mark.parametrize("direction", [0.0, 0.3, 0.5])
def test_a_narrow_view(direction) -> None:
    warp = draw_warp(np.full(40, 0.5), 0.0)  # Nothing but what is made narrower.
    thin = narrow(warp, direction, 0.5)
    along = np.array([[np.cos(np.pi * direction), np.sin(np.pi * direction)]]) / 2
    across = along[:, ::-1] * (-1, 1)
    np.testing.assert_allclose(thin.invert(along), 0.7 * along, atol=1e-9)
    np.testing.assert_allclose(thin.invert(across), across, atol=1e-9)


def test_a_copy_shows_the_keypoints_where_the_warp_puts_them(objects) -> None:
    sided = [replace(one, names=("L_a",)) for one in objects]
    shown = {one.name: one for one in add_mirrored(sided)}
    copies = make_copies(list(shown.values()), 2.0, 0.5, 128)
    assert len({one.name for one in copies}) == len(copies) == 16
    for one in copies:
        original = shown[one.name.rpartition(", copy")[0]]
        assert (one.category, one.names) == (original.category, original.names)
        place = (one.image.warp.apply(one.points * 2 / 128 - 1) + 1) * SIDE / 2
        np.testing.assert_allclose(place, frame_points(original, SIDE), atol=1e-6)
    assert len({name_entry(one) for one in copies}) == 16


def test_a_mirrored_object_has_other_copies(objects) -> None:
    plain, mirrored = objects[0], replace(objects[0], mirrored=True)
    names = {name_entry(one) for shown in (plain, mirrored) for one in make_copies([shown], 1.0, 1.0)}
    assert len(names) == 2


def test_half_of_the_objects_have_a_copy(objects) -> None:
    many = [replace(objects[0], name=f"thing/{number}") for number in range(200)]
    names = [{one.name for one in make_copies(order, 0.5, 1.0, 16)} for order in (many, many[::-1])]
    assert names[0] == names[1]
    assert 70 < len(names[0]) < 130
    assert names[0] < {one.name for one in make_copies(many, 1.5, 1.0, 16)}
    assert not make_copies(many, 0.0, 1.0)


def test_keypoints_that_a_copy_does_not_show_are_left_out(tmp_path) -> None:
    points = np.array([[5.5, 10.5], [60.0, 57.5], [114.5, 109.5]])
    shown = replace(draw_object(tmp_path, 0), names=("first", "middle", "last"), points=points)
    copies = make_copies([shown], 12.0, 2.0, 128)
    assert {"middle"} < set().union(*({*one.names} for one in copies))
    assert any(len(one.names) < 3 for one in copies)
    for one in copies:
        assert ((one.points > 0) & (one.points < 128)).all()
