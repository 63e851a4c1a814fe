from __future__ import annotations

import contextlib
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from quadmatch.datasets.boxes import choose_box
from quadmatch.datasets.pixels import crop, move_points, read_pixels
from quadmatch.datasets.points import check_points

RANDOM = np.random.default_rng(0)
COLOUR = RANDOM.integers(0, 256, (20, 30, 3), dtype=np.uint8)


def test_every_form_of_a_picture_gives_the_same_bytes(tmp_path) -> None:
    path = tmp_path / "ä picture.png"
    Image.fromarray(COLOUR).save(path)
    forms = [path, str(path), Image.fromarray(COLOUR), COLOUR, COLOUR / 255, COLOUR.astype(np.float32)]
    forms += [COLOUR.astype(np.int64), COLOUR.astype(np.uint16) * 257]
    for form in forms:
        assert np.array_equal(read_pixels(form), COLOUR)


def test_grey_alpha_and_sixteen_bits() -> None:
    grey = COLOUR[..., 0]
    for form in (grey, grey[..., None], Image.fromarray(grey), Image.fromarray(grey.astype(np.uint16) * 257)):
        assert np.array_equal(read_pixels(form), np.repeat(grey[..., None], 3, -1))
    assert read_pixels(grey > 128).max() == 255
    alpha = np.concatenate([COLOUR, np.zeros_like(COLOUR[..., :1])], -1)
    assert (read_pixels(alpha) == 255).all()
    assert (read_pixels(Image.fromarray(alpha)) == 255).all()
    alpha[..., 3] = 255
    assert np.array_equal(read_pixels(alpha), COLOUR)
    assert np.array_equal(read_pixels(Image.fromarray(alpha)), COLOUR)
    assert read_pixels(Image.fromarray(COLOUR).convert("CMYK")).shape == COLOUR.shape
    assert read_pixels(Image.fromarray(COLOUR).quantize(16)).shape == COLOUR.shape


def test_pictures_are_turned_upright(tmp_path) -> None:
    picture = Image.fromarray(COLOUR)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by a quarter
    path = tmp_path / "turned.png"
    picture.save(path, exif=exif)
    assert np.array_equal(read_pixels(path), np.rot90(COLOUR, -1))


def test_an_animation_is_its_first_frame(tmp_path) -> None:
    frames = [Image.fromarray(np.full((8, 8, 3), value, np.uint8)) for value in (0, 255)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert read_pixels(tmp_path / "a.gif").max() == 0


def test_what_is_no_picture_is_named(tmp_path) -> None:
    (tmp_path / "text.png").write_text("no picture")
    Image.fromarray(RANDOM.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(tmp_path / "whole.jpg")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:900])
    for name in ("text.png", "cut.jpg"):
        with pytest.raises(ValueError, match=rf"image_a: cannot read the picture .*{name}"):
            read_pixels(tmp_path / name, "image_a")
    with pytest.raises(ValueError, match="image_a: cannot read the picture"):
        read_pixels(tmp_path, "image_a")
    with pytest.raises(FileNotFoundError, match=r"image_b: there is no file .*none\.jpg"):
        read_pixels(tmp_path / "none.jpg", "image_b")
    with pytest.raises(TypeError, match="image_a must be a path, a PIL image or a numpy array, got int"):
        read_pixels(3, "image_a")
    bad = [np.zeros((2, 2, 2)), np.zeros((0, 4)), np.zeros(4), np.full((2, 2), np.nan), -np.ones((2, 2))]
    for array in bad:
        with pytest.raises(ValueError, match="image"):
            read_pixels(array)
    with pytest.raises(TypeError, match="numbers"):
        read_pixels(np.array([["a"]]))


def test_depths_of_cameras_are_stretched() -> None:
    for bits in (8, 10, 12, 14, 16):
        white = 2**bits - 1
        values = np.array([[0, white // 2], [white, white]], dtype=np.uint16)
        assert read_pixels(values)[..., 0].tolist() in ([[0, half], [255, 255]] for half in (127, 128))


@pytest.mark.parametrize("kind", ["jpg", "png", "webp", "gif", "tif", "bmp"])
def test_damaged_files_are_pictures_or_clear_errors(tmp_path, kind) -> None:
    picture = Image.fromarray(COLOUR.repeat(4, 0).repeat(4, 1))
    picture.save(tmp_path / f"whole.{kind}", save_all=kind in ("webp", "gif"))
    whole = (tmp_path / f"whole.{kind}").read_bytes()
    random, path = np.random.default_rng(3), tmp_path / f"bad.{kind}"
    for trial in range(25):
        content = bytearray(whole)
        for place in random.integers(0, len(content), 1 + trial % 6):
            content[place] = random.integers(256)
        path.write_bytes(content[: random.integers(len(content))] if trial % 5 == 0 else content)
        found = None
        with contextlib.suppress(ValueError):
            found = read_pixels(path, "image_a")
        if found is None:
            with pytest.raises(ValueError, match="image_a: cannot read the picture"):
                read_pixels(path, "image_a")
        else:
            assert found.shape[2] == 3


def test_colour_spaces_and_animations(tmp_path) -> None:
    # One colour, of the palette of 216: no format loses more than rounding.
    flat = Image.new("RGB", (24, 16), (204, 51, 102))
    other = Image.new("RGB", (24, 16), (0, 255, 0))
    for mode, name in (("CMYK", "c.jpg"), ("CMYK", "c.tif"), ("YCbCr", "y.jpg"), ("RGBA", "a.webp"), ("P", "p.png")):
        flat.convert(mode).save(tmp_path / name)
    for name in ("move.gif", "move.webp", "move.png"):
        flat.save(tmp_path / name, save_all=True, append_images=[other], lossless=True)
    for path in tmp_path.iterdir():
        found = read_pixels(path)
        assert found.shape == (16, 24, 3), path.name
        assert np.abs(found.astype(int) - [204, 51, 102]).max() <= 5, path.name


def test_bombs_programs_and_other_files_are_refused(tmp_path) -> None:
    row = zlib.compress(bytes(20_000 * (20_000 // 8 + 1)), 9)
    header = struct.pack(">IIBBBBB", 20_000, 20_000, 1, 0, 0, 0, 0)
    chunks = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", header), (b"IDAT", row), (b"IEND", b""))
    )
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
    assert (tmp_path / "bomb.png").stat().st_size < 100_000
    Image.fromarray(COLOUR).save(tmp_path / "program.eps")
    (tmp_path / "page.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "empty.jpg").write_bytes(b"")
    reasons = {"bomb.png": "400000000 pixels", "program.eps": "another program"}
    for name in ("bomb.png", "program.eps", "page.svg", "empty.jpg"):
        reason = reasons.get(name, "cannot identify")
        with pytest.raises(ValueError, match=rf"image_b: cannot read the picture .*{name}.*{reason}"):
            read_pixels(tmp_path / name, "image_b")


def test_points_are_checked() -> None:
    for empty in ([], np.zeros((0, 2)), [[]]):
        assert check_points(empty).shape == (0, 2)
    assert check_points([(1, 2)]).dtype == np.float64
    for bad, reason in (
        ([1, 2], "'0' needs two numbers"),
        ([[1, 2, 3]], r"'0' needs two numbers x, y; got \[1, 2, 3\]"),
        (["12", "34"], "'0' needs two numbers"),
        ([[1, np.nan]], "finite"),
        ([[np.inf, 1]], "finite"),
        ("ab", r"must be \[\[x, y\], …\]"),
        ([[1], [1, 2]], "'0' needs two numbers"),
        (np.zeros((2, 2, 2)), "'0' needs two numbers"),
    ):
        with pytest.raises(ValueError, match=r"points_a.*" + reason):
            check_points(bad, "points_a")


coordinates = st.floats(-500, 500, allow_nan=False).map(lambda value: round(value, 2))


@given(arrays(np.float64, st.tuples(st.integers(0, 6), st.just(2)), elements=coordinates))
def test_a_box_lies_in_the_picture_and_holds_its_points(points) -> None:
    x0, y0, x1, y1 = choose_box(points, 200, 100, None)
    assert 0 <= x0 < x1 <= 200
    assert 0 <= y0 < y1 <= 100
    inside = points[((points >= 0) & (points <= [200, 100])).all(1)]
    if (x1 - x0, y1 - y0) != (200, 100) and len(inside):
        assert ((inside >= [x0, y0]) & (inside <= [x1, y1])).all()
    assert crop(np.zeros((100, 200, 3), np.uint8), (x0, y0, x1, y1), 32).shape == (32, 32, 3)
    back = move_points(points, (x0, y0, x1, y1), 32) * [(x1 - x0) / 32, (y1 - y0) / 32] + [x0, y0]
    assert np.allclose(back, points, atol=1e-3)


def test_a_given_box_is_clipped_or_refused() -> None:
    points = np.array([[5.0, 5.0]])
    assert choose_box(points, 30, 20, (-5, 2, 10, 50)) == (0, 2, 10, 20)
    assert choose_box(points, 30, 20, None) == (0, 0, 30, 20)
    for bad in ((5, 5, 5, 9), (9, 0, 1, 9), (0, 0, 1), (0, 0, np.nan, 1), (40, 40, 50, 50)):
        with pytest.raises(ValueError, match="box of image_a"):
            choose_box(points, 30, 20, bad, "box of image_a")
