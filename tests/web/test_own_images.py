"""What docs/own-images.md shows works as it stands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from own_pictures import POINTS, draw_pixels, make_matcher
from PIL import Image
from typer.testing import CliRunner

import quadmatch
import quadmatch.models.load
from quadmatch.cli import app
from quadmatch.datasets.keypoint_files import parse_keypoints
from quadmatch.own_images.answer import read_schema

PAGE = (Path(__file__).parents[2] / "docs" / "own-images.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
COMMANDS = [line for kind, text in BLOCKS if not kind for line in text.splitlines() if line.startswith("quadmatch ")]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(quadmatch.models.load, "load", lambda name="default", precision=None: make_matcher())
    monkeypatch.setattr(quadmatch, "load", lambda: make_matcher())
    for side in "ab":
        Image.fromarray(draw_pixels()).save(f"{side}.jpg")
        Path(f"{side}.json").write_text(json.dumps(POINTS.tolist()))
        Path(f"{side}.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in POINTS.tolist()))
    heading = "image_a,points_a,image_b,points_b,box_a,box_b"
    Path("pairs.csv").write_text(f'{heading}\na.jpg,a.json,b.jpg,b.json,"1,2,40,40",\n')


def test_commands_run_and_write_what_they_say() -> None:
    assert len(COMMANDS) == 6
    for command in COMMANDS:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert done.exit_code == 0, done.output
    validator = Draft202012Validator(read_schema("matches"))
    validator.validate(json.loads(Path("matches.json").read_text()))
    for line in Path("matches.jsonl").read_text().splitlines():
        validator.validate(json.loads(line))
    assert Path("matches.png").read_bytes().startswith(b"\x89PNG")


def test_examples_of_points_are_read() -> None:
    found = [json.loads(text) for kind, text in BLOCKS if kind == "json"]
    assert found
    for stored in found:
        Draft202012Validator(read_schema("points")).validate(stored)
        assert len(parse_keypoints(stored, "page").points) == 3


def test_python_runs() -> None:
    names: dict[str, object] = {}
    for kind, text in BLOCKS:
        if kind == "python":
            exec(text, names)
    assert Path("matches.png").is_file()


def test_fields_that_the_page_shows_are_in_the_schema() -> None:
    shown = next(text for kind, text in BLOCKS if not kind and text.startswith("{"))
    known = set(read_schema("matches")["$defs"]["match"]["properties"])
    fields = set(re.findall(r'"(\w+)":', shown))
    assert {"pairs", "scores", "coordinates"} <= fields <= known
