"""What the benchmark of people's own pictures counts."""

import subprocess
import sys

import numpy as np
import pytest

from quadmatch.bench.pictures import find_blobs, measure_repeatability, sum_imports
from quadmatch.datasets.photo_warps import load_photograph
from quadmatch.own_images.corners import NEAREST


def test_imports_are_summed() -> None:
    record = (
        "import time: self [us] | cumulative | imported package\n"
        "import time:       100 |        100 |   one\n"
        "import time:   2000000 |    2000100 | two\n"
        "other words\n"
    )
    assert sum_imports(record) == pytest.approx(2.0001)
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", ""], capture_output=True, text=True)
    assert 0 < sum_imports(done.stderr) < 60


def test_views_that_are_alike_show_every_point_again(monkeypatch) -> None:
    import quadmatch.bench.pictures as pictures

    draw = pictures.draw_view
    monkeypatch.setattr(pictures, "draw_view", lambda file, seed, number, size: draw(file, seed, 0, size))
    assert measure_repeatability(("camera.png",), views=2)["ours"] == 1
    assert measure_repeatability(("camera.png",), views=2, count=0)["ours"] == 0


def test_sift_keeps_the_same_distance() -> None:
    pixels = (255 * load_photograph("camera.png")).astype(np.uint8)
    points = find_blobs(pixels, 20)
    assert len(points) == 20
    apart = np.linalg.norm(points[:, None] - points, axis=-1) + 1e9 * np.eye(20)
    assert apart.min() >= NEAREST


def test_a_level_has_its_images_a_second_and_its_share_of_convolution() -> None:
    from quadmatch.bench.training import measure_level

    row = measure_level("local", images=1, repeats=1)
    assert min(row["ours"], row["extracted_once_images_a_second"]) > 0  # which is more, a busy machine may hide
    assert 0 < row["convolution_share"] <= 1
    assert row["extracted_once_convolution_share"] > 0.5
