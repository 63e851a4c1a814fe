from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.photo_warps import SIDE, locate_corners
from quadmatch.datasets.views import KEPT, MARGIN, SEPARATION, VIEW, VIEWS, ObjectView, load_object, make_views, narrow
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
