"""Files at addresses are read as files on disk are, and no secret of an address is ever shown."""

from __future__ import annotations

import io
import json
import socket
from pathlib import Path

import pytest
from object_store import serve_objects
from own_pictures import POINTS, draw_pixels, make_matcher
from PIL import Image
from typer.testing import CliRunner

import quadmatch.models.load
from quadmatch.cli import app
from quadmatch.own_images import places
from quadmatch.own_images.loading import load_picture
from quadmatch.own_images.pair_lists import read_pairs

SECRET = "do-not-tell"
HEADING = "image_a,points_a,image_b,points_b\n"


def encode(number: int) -> bytes:
    content = io.BytesIO()
    Image.fromarray(draw_pixels(number)).save(content, "PNG")
    return content.getvalue()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(quadmatch.models.load, "load", lambda name="default", precision=None: make_matcher())


@pytest.fixture
def objects() -> dict[str, bytes]:
    """Pictures with keypoints, a list that names them, and a picture that may not be read."""
    points = {f"data/{n}.json": json.dumps((POINTS + n / 10).tolist()).encode() for n in range(3)}
    pictures = {f"data/{n}.png": encode(n) for n in range(3)}
    pairs = f"{HEADING}0.png,0.json,1.png,1.json\n1.png,1.json,2.png,2.json\n"
    return points | pictures | {"data/pairs.csv": pairs.encode(), "closed/0.png": encode(0)}


@pytest.fixture
def store(objects, monkeypatch):
    with serve_objects(objects) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield address


def run(pairs: object, out: Path, *words: object):
    return CliRunner().invoke(app, ["match-many", str(pairs), "--out", str(out), *map(str, words)])


def write_folder(folder: Path, objects: dict[str, bytes]) -> Path:
    for name, content in objects.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return folder / "data"


def test_lists_and_pictures_may_be_anywhere(objects, store, tmp_path) -> None:
    import fsspec

    on_disk = write_folder(tmp_path, objects)
    expected, out = tmp_path / "disk.jsonl", tmp_path / "out.jsonl"
    assert run(on_disk / "pairs.csv", expected).exit_code == 0
    memory = fsspec.filesystem("memory")
    for name, content in objects.items():
        memory.pipe(f"/{name}", content)
    for place in ("memory:/", f"{store}", "s3://bucket", f"file://{tmp_path}"):
        done = run(f"{place}/data/pairs.csv", out)
        assert done.exit_code == 0, done.output
        assert out.read_bytes() == expected.read_bytes(), place
        out.unlink()
    memory.rm("/data", recursive=True)


def test_an_annotation_of_a_file_at_an_address(store, objects) -> None:
    entry = {"image_id": 1, "category_id": 1, "keypoints": [9, 9, 2, 20, 30, 2]}
    objects["data/people.json"] = json.dumps(
        {
            "images": [{"id": 1, "file_name": "0.png"}],
            "categories": [{"id": 1, "keypoints": ["left", "right"]}],
            "annotations": [entry | {"id": 17}, entry | {"id": 18, "keypoints": [5, 5, 2, 6, 7, 2]}],
        }
    ).encode()
    picture = load_picture("0.png", "people.json#18", folder=f"{store}/data")
    assert picture.keypoints.points.tolist() == [[5, 5], [6, 7]]
    assert picture.points_file == "people.json#18"
    with pytest.raises(ValueError, match=rf"{store}/data/people\.json"):
        load_picture("0.png", "people.json", folder=f"{store}/data")


def test_what_may_not_be_read_is_said_and_no_secret(store, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    for address in (f"{store}/closed/0.png?signature={SECRET}", "s3://bucket/closed/0.png"):
        done = run(address, out)
        assert done.exit_code == 1
        assert "the storage refuses it; check the credentials" in done.output
        assert places.hide_secrets(address) in done.output
        assert SECRET not in done.output
        assert not list(tmp_path.iterdir())
    absent = run(f"{store}/none.csv?signature={SECRET}", out)
    assert absent.output == f"error: the list: there is no file {store}/none.csv?…\n"


def test_a_picture_that_may_not_be_read_does_not_stop_the_rest(store, tmp_path) -> None:
    data = f"{store}/data"
    pairs = tmp_path / "pairs.csv"
    rows = [f"{store}/{name}?signature={SECRET},{data}/0.json,{data}/1.png,{data}/1.json" for name in ("closed/0.png",)]
    rows.append(f"{data}/0.png?signature={SECRET},{data}/0.json?signature={SECRET},{data}/1.png,{data}/1.json")
    pairs.write_text(HEADING + "\n".join(rows) + "\n")
    out = tmp_path / "out.jsonl"
    done = run(pairs, out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert done.exit_code == 1
    assert f"row 1: side a: image: cannot read {store}/closed/0.png?…: the storage refuses it" in done.output
    assert "error" in lines[0]
    assert lines[1]["image_a"] == f"{data}/0.png?…"
    assert SECRET not in done.output + out.read_text()
    assert "2 pairs were there already" in run(pairs, out).output


def test_a_secret_behind_a_name_without_address_is_not_shown_either(store, objects, tmp_path) -> None:
    sides = f"0.png?signature={SECRET},0.json?signature={SECRET}", f"1.png,1.json?signature={SECRET}"
    objects["data/signed.csv"] = f"{HEADING}{sides[0]},{sides[1]}\n{sides[1]},none.png?signature={SECRET},\n".encode()
    done = run(f"{store}/data/signed.csv?signature={SECRET}", tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (lines[0]["image_a"], lines[0]["image_b"]) == (f"{store}/data/0.png?…", "1.png")
    assert "error" in lines[1]
    assert SECRET not in done.output + (tmp_path / "out.jsonl").read_text()


def test_nobody_answers(tmp_path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = run(f"http://127.0.0.1:{port}/pairs.csv?signature={SECRET}", tmp_path / "out.jsonl")
    assert done.exit_code == 1
    assert done.output.startswith(f"error: the list: cannot read http://127.0.0.1:{port}/pairs.csv?…: Cannot connect")
    assert SECRET not in done.output


def test_passwords_in_addresses_are_refused(tmp_path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(f"{HEADING}a.png,a.json,ftp://someone:{SECRET}@host/b.png,b.json\n")
    for name, reason in (
        (pairs, "row 1: ftp://host/b.png has a password"),
        (f"ftp://me:{SECRET}@host/p.csv", "the list"),
    ):
        with pytest.raises(ValueError, match=reason) as caught:
            read_pairs(name)
        assert SECRET not in str(caught.value)


def test_a_file_that_is_too_large_is_not_fetched_whole(store, objects, monkeypatch) -> None:
    monkeypatch.setattr(places, "LARGEST", 2**20)
    objects["data/large.png"] = bytes(2**20 + 1)
    with pytest.raises(ValueError, match=r"large\.png: it has more than 1 MB"):
        load_picture(f"{store}/data/large.png", f"{store}/data/0.json")


@pytest.mark.parametrize(
    ("name", "remote"),
    [("s3://b/x", True), ("zip://a.png::s3://b/x.zip", True), ("C:/x/y.png", False), ("a b/c.png", False)],
)
def test_addresses_are_told_from_paths(name: str, remote: bool) -> None:
    assert places.is_remote(name) == remote
    assert (places.locate("/folder", name) == name) == (remote or name.startswith("/"))
