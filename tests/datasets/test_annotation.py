import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from quadmatch.datasets.annotation import Annotation, find_box, frame_points, load_crop, read_picture
from quadmatch.datasets.folder import folder
from quadmatch.datasets.pixels import read_pixels
from quadmatch.datasets.splits import hold_out


def make(image, box=None, points=((3.0, 4.0), (10.0, 6.0))):
    names = tuple(str(number) for number in range(len(points)))
    return Annotation("kind/one", "kind", image, box, names, np.array(points, dtype=np.float64).reshape(-1, 2))


def render():
    y, x = np.mgrid[:40, :60]
    return np.stack([4 * x, 6 * y, x + y], -1).astype(np.uint8)


def test_the_crop_is_pillows_and_points_follow(tmp_path):
    Image.fromarray(render()).save(tmp_path / "a.png")
    one = make(tmp_path / "a.png", (5.0, 2.0, 45.0, 34.0))
    crop, points = load_crop(one, 64)
    expected = Image.fromarray(render()).resize((64, 64), Image.Resampling.BICUBIC, box=(5, 2, 45, 34))
    np.testing.assert_array_equal(crop, np.asarray(expected))
    assert points.dtype == np.float32
    np.testing.assert_allclose(points, [[(3 - 5) * 64 / 40, (4 - 2) * 2], [(10 - 5) * 64 / 40, 8]])


def test_a_point_stays_on_the_same_part_of_the_picture():
    picture = np.zeros((80, 120, 3), dtype=np.uint8)
    picture[50:54, 70:74] = 255  # a spot around (72, 52)
    crop, points = load_crop(make(lambda: picture, (40.0, 20.0, 100.0, 70.0), [(72.0, 52.0)]), 128)
    weight = crop[..., 0].astype(float)
    y, x = np.mgrid[:128, :128] + 0.5
    centre = (x * weight).sum() / weight.sum(), (y * weight).sum() / weight.sum()
    np.testing.assert_allclose(points[0], centre, atol=0.2)


def save_lying(path, turn=6):
    """A picture as a phone stores it: lying, with a flag that says how to turn it."""
    exif = Image.Exif()
    exif[0x0112] = turn
    Image.fromarray(render()).save(path, exif=exif, **({"quality": 95} if path.suffix == ".jpg" else {}))
    if path.name.startswith("late"):  # The flag behind the pixels, as a PNG file may have it.
        content = path.read_bytes()
        start = content.index(b"eXIf") - 4
        end = start + 12 + int.from_bytes(content[start : start + 4], "big")
        path.write_bytes(content[:start] + content[end:-12] + content[start:end] + content[-12:])


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("name", ["a.jpg", "a.png", "late.png", "a.webp", "a.tif"])
def test_training_sees_a_phones_picture_upright_as_matching_does(tmp_path, name, turn):
    save_lying(tmp_path / name, turn)
    upright = read_pixels(tmp_path / name)
    assert upright.shape == ((60, 40, 3) if turn > 4 else (40, 60, 3))
    one = make(tmp_path / name)
    np.testing.assert_array_equal(read_picture(one), upright)
    assert find_box(one) == (0.0, 0.0, *(float(side) for side in upright.shape[1::-1]))
    for found, expected in zip(load_crop(one, 32), load_crop(make(lambda: upright), 32)):
        np.testing.assert_array_equal(found, expected)


def test_boxes_of_a_folder_are_of_the_upright_picture(tmp_path):
    save_lying(tmp_path / "a.jpg")
    (tmp_path / "a.json").write_text('{"keypoints": [[20, 50]], "box": [10, 5, 35, 58]}')
    (one,) = folder(tmp_path, "train", test_share=0.0)
    assert one.box == (10.0, 5.0, 35.0, 58.0)
    crop, points = load_crop(one, 32)
    assert crop.shape == (32, 32, 3)
    np.testing.assert_allclose(points, [[10 * 32 / 25, 45 * 32 / 53]], rtol=1e-6)


def test_sixteen_bits_and_transparency_are_read_as_in_matching(tmp_path):
    grey = render()[..., 0].astype(np.uint16) * 257
    Image.fromarray(grey).save(tmp_path / "deep.png")
    clear = np.concatenate([render(), np.full((40, 60, 1), 100, np.uint8)], -1)
    Image.fromarray(clear).save(tmp_path / "clear.png")
    for path in sorted(tmp_path.iterdir()):
        found = read_picture(make(path))
        np.testing.assert_array_equal(found, read_pixels(path))
        assert len(np.unique(found)) > 20


def test_a_rendered_picture_and_a_file_are_alike(tmp_path):
    Image.fromarray(render()).save(tmp_path / "a.png")
    for first, second in zip(load_crop(make(render), 32), load_crop(make(tmp_path / "a.png"), 32)):
        np.testing.assert_array_equal(first, second)
    assert find_box(make(render)) == find_box(make(tmp_path / "a.png")) == (0.0, 0.0, 60.0, 40.0)
    assert pickle.loads(pickle.dumps(make(render))).names == ("0", "1")


def test_without_keypoints():
    assert frame_points(make(render, points=())).shape == (0, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ("a",)}, "1 keypoint names but 2 points"),
        ({"names": ("a", "a")}, "must differ"),
        ({"points": np.array([[0.0, np.nan], [1.0, 1.0]])}, "not finite"),
        ({"box": (5.0, 0.0, 5.0, 9.0)}, "x0 < x1"),
    ],
)
def test_bad_annotations_are_refused(changes, message):
    with pytest.raises(ValueError, match=f"kind/one.*{message}"):
        replace(make(render), **changes)


def test_bad_pictures_are_named(tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no picture")
    for path in (tmp_path / "bad.png", tmp_path / "none.png"):
        with pytest.raises((ValueError, FileNotFoundError), match=path.name):
            load_crop(make(path))
        with pytest.raises((ValueError, FileNotFoundError), match=path.name):
            load_crop(make(path, (0.0, 0.0, 5.0, 5.0)))
    with pytest.raises(ValueError, match="exceeds"):
        load_crop(make(render, (0.0, 0.0, 61.0, 40.0)))


@given(st.dictionaries(st.integers(0, 400).map(str), st.sets(st.sampled_from("abc"), min_size=1), max_size=80))
def test_held_out_pictures(objects):
    rows = [(kind, picture) for picture, kinds in objects.items() for kind in sorted(kinds)]
    held = hold_out(rows)
    assert held == hold_out(rows[::-1])
    for kind in "abc":
        pictures = {picture for one, picture in rows if one == kind}
        least = max(round(0.1 * len(pictures)), 2 * (len(pictures) >= 10))
        assert len(held & pictures) >= least
    assert held <= set(objects)
