"""Whether two runs are the same, bit for bit."""

from __future__ import annotations

from pathlib import Path

from quadmatch.models.checkpoints import FOLDER, PARTS, list_checkpoints, read_state
from quadmatch.training.log import read_log


def assert_same(run: Path, other: Path) -> None:
    """The same losses at the same steps, and the same bytes in the same checkpoints."""
    kept, expected = (
        [(line["step"], line["kind"], line.get("loss"), line["accuracy"]) for line in read_log(one)]
        for one in (run, other)
    )
    assert kept == expected
    assert list_checkpoints(run) == list_checkpoints(other)
    assert read_state(run)["best"] == read_state(other)["best"]
    for step in list_checkpoints(other):
        for part in PARTS:
            name = f"{FOLDER}/{step:08d}/{part}.safetensors"
            assert (run / name).read_bytes() == (other / name).read_bytes(), name
