"""What a user gets who has the wheel and not the repository."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

USE = """
import json
from pathlib import Path

import numpy as np
import quadmatch as qm
from quadmatch.experiments.reading import read_experiment
from quadmatch.own_images.answer import read_schema
from quadmatch.models.load import list_models

rng = np.random.default_rng(0)
picture = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
points = rng.uniform(8, 56, (6, 2))
right = {
    name: int((qm.load(name).match(picture, points, picture, points).pairs[:, 1] == np.arange(6)).sum())
    for name in list_models()
}
print(json.dumps({
    "file": qm.__file__,
    "right": right,
    "steps": read_experiment("qcdgm1_willow").training.steps,
    "schema": "$schema" in read_schema("matches"),
    "page": (Path(qm.__file__).parent / "web" / "static" / "index.html").is_file(),
}))
"""


def run(*words: str, **options: object) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_holds_all_that_is_needed(tmp_path) -> None:
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    run(*pip, "install", "--no-deps", "--target", str(installed), str(wheel))
    # Before the repository's own source, which the environment of the tests has on its path. The loops of a new folder
    # are not compiled yet, which would take most of the time and shows nothing about the wheel.
    environment = os.environ | {"PYTHONPATH": str(installed), "NUMBA_DISABLE_JIT": "1"}
    found = json.loads(run("-c", USE, cwd=tmp_path, env=environment).splitlines()[-1])
    assert Path(found["file"]).is_relative_to(installed)
    assert {"default", "qcdgm-voc", "qcdgm1-voc", "qcdgm2-voc", "vgg16"} <= found["right"].keys()
    assert all(right == 6 for right in found["right"].values()), found["right"]
    assert found["steps"] > 0
    assert found["schema"]
    assert found["page"]
