"""Files of points that the page loads, read as the command line reads them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from web_server import build_quick_matcher, encode

from quadmatch.web.app import build_app
from quadmatch.web.points_files import LARGEST
from quadmatch.web.uploads import Limits

COCO = {
    "images": [{"id": 1, "file_name": "one.jpg"}],
    "categories": [{"id": 1, "name": "bird", "keypoints": ["beak", "eye", "tail"]}],
    "annotations": [
        {"id": 5, "image_id": 1, "category_id": 1, "keypoints": [3, 4, 2, 0, 0, 0, 9, 8, 1], "bbox": [1, 2, 20, 30]}
    ],
}


@pytest.fixture(scope="module")
def client():
    limits = Limits(bytes=LARGEST + 10, points=5)
    with TestClient(build_app(build_quick_matcher(), limits), base_url="http://127.0.0.1") as made:
        yield made


def read(client, content, name="points.json", **fields):
    text = content if isinstance(content, (str, bytes)) else json.dumps(content)
    return client.post("/api/points", files={"file": (name, text)}, data={"width": 64, "height": 48, **fields})


def test_each_form_of_the_command_line_is_read(client) -> None:
    plain = {"points": [[1.0, 2.0], [3.0, 4.5]], "names": None, "box": None}
    assert read(client, [[1, 2], [3, 4.5]]).json() == plain
    assert read(client, "x,y\n1,2\n3,4.5\n", "Ä b.CSV").json() == plain
    named = read(client, "name,x,y\nnose,1,2\nchin,3,4.5\n", "p.csv").json()
    assert named == plain | {"names": ["nose", "chin"]}
    boxed = read(client, {"points": {"nose": [1, 2], "chin": [3, 4.5]}, "box": [0, 0, 9, 9]}).json()
    assert boxed == named | {"box": [0.0, 0.0, 9.0, 9.0]}
    coco = read(client, COCO, image="one.jpg").json()
    assert coco == {"points": [[3.0, 4.0], [9.0, 8.0]], "names": ["beak", "tail"], "box": [1.0, 2.0, 21.0, 32.0]}


def test_faults_name_the_file_and_nothing_stays(client, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for content, reason in (
        ("{", "mine.json"),
        ("[" * 90_000, "mine.json"),
        ([[1, 2], ["nose", 2]], "mine.json"),
        (f"[[{'9' * 400}, 1]]", ""),
        ({"x": 1}, "no points"),
        (b"\xff\xfe\x00", "mine.json"),
    ):
        refused = read(client, content, "../../mine.json")
        assert refused.status_code == 400, refused.text
        message = refused.json()["error"]["message"]
        assert reason in message
        assert str(tmp_path) not in message
    assert "point 1 at (65, 4) lies outside the 64 × 48" in read(client, [[1, 2], [65, 4]]).text
    assert read(client, [[1, 1]] * 6).json()["error"]["code"] == "too-many-points"
    assert read(client, " " * (LARGEST + 1)).json()["error"]["code"] == "too-large"
    assert read(client, [], width="wide").json()["error"]["code"] == "bad-number"
    assert not list(Path(tmp_path).iterdir())


def test_names_and_box_go_with_a_match(client) -> None:
    files = {"image_a": encode(), "image_b": encode()}
    points = {f"points_{side}": "[[5, 6], [50, 9], [30, 40]]" for side in "ab"}

    def match(**fields):
        return client.post("/api/match", files=files, data=points | fields)

    content = match(names_a='["nose", "ear", "chin"]', box_b="1,2,60,44").json()
    assert content["names_a"] == ["nose", "ear", "chin"]
    assert content["names_b"] is None
    assert (content["box_a"], content["box_b"]) == (None, [1.0, 2.0, 60.0, 44.0])
    for bad in ('["one"]', "[1, 2, 3]", "{", '"abc"'):
        assert match(names_a=bad).json()["error"]["code"] == "bad-names"
    for bad in ("1,2,3", "9,9,1,1", "70,1,80,9", "-9,-9,-1,-1", "nan,1,2,3", "x"):
        assert match(box_b=bad).json()["error"]["code"] == "bad-box"


def test_half_a_character_in_a_name_is_refused(client, caplog) -> None:
    refused = read(client, '{"points": {"\\ud800": [1, 2], "b": [30, 40]}}')
    assert refused.status_code == 400
    assert "points.json: 'points': '\\ud800' has half a character" in refused.json()["error"]["message"]
    files = {"image_a": encode(), "image_b": encode()}
    fields = {"points_a": "[[5, 6], [50, 9]]", "names_a": '["nose", "\\udc00"]'}
    refused = client.post("/api/match", files=files, data=fields)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad-names")
    assert "names_a: '\\udc00' has half" in refused.json()["error"]["message"]
    whole = read(client, '{"points": {"\\ud83d\\ude00": [1, 2], "b": [30, 40]}}')
    assert whole.json()["names"] == ["😀", "b"]
    # Other codes than UTF-8 can write such a half too.
    part = b'--b\r\nContent-Disposition: form-data; name="image_a"; filename="+2AA-"\r\n\r\nx\r\n--b--\r\n'
    header = {"content-type": "multipart/form-data; boundary=b; charset=utf-7"}
    refused = client.post("/api/match", content=part, headers=header)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad-form")
    assert not caplog.records
