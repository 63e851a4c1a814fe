from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from own_pictures import POINTS, draw_pixels, make_matcher
from PIL import Image
from typer.testing import CliRunner

import quadmatch.models.load
import quadmatch.own_images.bulk as many
import quadmatch.own_images.groups as groups
from quadmatch.cli import app
from quadmatch.datasets.picture import make_picture
from quadmatch.datasets.turning import turn_picture
from quadmatch.own_images.answer import Settings, read_schema
from quadmatch.own_images.kept import Kept, measure
from quadmatch.own_images.pair_lists import read_pairs

SCHEMA = Draft202012Validator(read_schema("matches"))
PICTURES = 5


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(quadmatch.models.load, "load", lambda name="default", precision=None: make_matcher())
    monkeypatch.setattr(many, "TOGETHER", 4)


@pytest.fixture
def place(tmp_path):
    """A folder of pictures with keypoints, one of them broken, and a list of pairs."""
    folder = tmp_path / "list ö"
    folder.mkdir()
    for number in range(PICTURES):
        Image.fromarray(draw_pixels(number % 2)).save(folder / f"{number}.png")
        (folder / f"{number}.json").write_text(json.dumps((POINTS + number / 10).tolist()))
    (folder / "broken.png").write_bytes((folder / "0.png").read_bytes()[:200])
    random = np.random.default_rng(0)
    lines = ["image_a,points_a,image_b,points_b,box_a"]
    for _ in range(11):
        i, j = random.integers(0, PICTURES, 2)
        lines.append(f"{i}.png,{i}.json,{j}.png,{j}.json,")
    lines[3] = "broken.png,0.json,1.png,1.json,"
    lines[6] = "0.png,none.json,1.png,1.json,"
    lines[7] = '0.png,0.json,1.png,1.json,"1,2,40,30"'
    lines[8] = "0.png,,1.png,1.json,"
    (folder / "pairs.csv").write_text("\n".join(lines) + "\n")
    return folder


def run(place, *words):
    return CliRunner().invoke(
        app, ["match-many", str(place / "pairs.csv"), "--out", str(place / "m.jsonl"), *map(str, words)]
    )


def read(place):
    lines = [json.loads(line) for line in (place / "m.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        SCHEMA.validate(line)
    return lines


def test_one_bad_picture_does_not_stop_the_rest(place) -> None:
    done = run(place)
    assert done.exit_code == 1
    lines = read(place)
    assert [line["row"] for line in lines] == list(range(1, 12))
    failed = {line["row"]: line["error"] for line in lines if "error" in line}
    assert set(failed) == {3, 6, 8}
    for row, reason in ((3, "broken.png"), (6, "none.json"), (8, "has no keypoints")):
        assert reason in failed[row]
        assert f"row {row}: side " in done.output
        assert reason in done.output
    assert "8 of 11 pairs matched" in done.output
    assert lines[6]["box_a"] == [1, 2, 41, 32]
    detected = run(place, "--detect", 8)
    assert detected.exit_code == 1
    assert "was made with detect None, not 8" in detected.output
    (place / "m.jsonl").unlink()
    run(place, "--detect", 8)
    assert [line["row"] for line in read(place) if "error" in line] == [3, 6]
    assert [line.get("partial", False) for line in read(place)] == [row == 8 for row in range(1, 12)]


def test_a_pair_of_the_list_is_the_pair_alone(place) -> None:
    run(place)
    for line in read(place):
        if "error" in line:
            continue
        paths = [place / line[key] for key in ("image_a", "points_file_a", "image_b", "points_file_b")]
        points = [json.loads(path.read_text()) for path in (paths[1], paths[3])]
        alone = make_matcher().match(paths[0], points[0], paths[2], points[1], box_a=line["box_a"])
        assert alone.pairs.tolist() == line["pairs"]
        assert np.allclose(alone.scores, line["scores"], atol=1e-3)


def test_turned_pictures_are_found_out_as_by_match(place) -> None:
    turned = turn_picture(make_picture(draw_pixels(0), POINTS), "270")
    Image.fromarray(turned.image).save(place / "0.png")
    (place / "0.json").write_text(json.dumps(turned.keypoints.points.tolist()))
    lines = ["image_a,points_a,image_b,points_b,box_b", "2.png,2.json,0.png,0.json,", "2.png,2.json,2.png,2.json,"]
    lines += ['2.png,2.json,0.png,0.json,"0,0,48,64"', "2.png,2.json,broken.png,0.json,", "0.png,0.json,2.png,2.json,"]
    (place / "pairs.csv").write_text("\n".join(lines))
    run(place, "--orientation", "auto")
    found, out = read(place), place / "m.jsonl"
    assert [line.get("orientation") for line in found] == ["90", "0", "90", None, "270"]
    assert {line["orientation_asked"] for line in found} == {"auto"}
    same = [[number, number] for number in range(len(POINTS))]
    assert [line["pairs"] for line in found if "error" not in line] == [same] * 4
    assert found[0]["points_b"] == turned.keypoints.points.tolist()
    assert found[0]["size_b"] == [48, 64]
    points = [json.loads((place / f"{number}.json").read_text()) for number in (2, 0)]
    alone = make_matcher().match(place / "2.png", points[0], place / "0.png", points[1], orientation="auto")
    assert np.allclose(alone.scores, found[0]["scores"], atol=1e-3)
    whole = out.read_bytes()
    out.write_bytes(whole[: whole.rfind(b'{"row": 5')])
    assert "was made with orientation_asked 'auto', not '0'" in run(place).output
    run(place, "--orientation", "auto")
    assert out.read_bytes() == whole
    out.unlink()
    run(place)
    assert [line.get("orientation") for line in read(place)] == ["0", "0", "0", None, "0"]
    assert "orientation must be auto or one of 0, 90" in run(place, "--orientation", "45").output


def test_a_killed_run_ends_in_the_same_file(place) -> None:
    run(place)
    out = place / "m.jsonl"
    whole = out.read_bytes()
    for share in (0.001, 0.4, 0.77, 0.999):
        out.write_bytes(whole[: int(len(whole) * share)])
        run(place)
        assert out.read_bytes() == whole


PROGRAM = """
import sys
import time

sys.path.insert(0, {tests!r})
from own_pictures import make_matcher

import quadmatch.own_images.bulk as many
import quadmatch.own_images.engine as engine
import quadmatch.models.load
from quadmatch.cli import app

quadmatch.models.load.load = lambda name="default", precision=None: make_matcher()
many.TOGETHER = 4
match_group = engine.match_group


def wait_after_one(matcher, find, group, settings):
    if group[0].number > 1:  # However late the kill comes, it comes after the first group.
        time.sleep(600)
    return match_group(matcher, find, group, settings)


engine.match_group = wait_after_one
app({words!r})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_one_process_writes_a_file_and_loses_no_finished_line_when_killed(place) -> None:
    run(place)
    whole = (place / "m.jsonl").read_bytes()
    (place / "m.jsonl").unlink()
    words = ["match-many", str(place / "pairs.csv"), "--out", str(place / "m.jsonl")]
    support = str(Path(__file__).parents[1] / "support")
    program = PROGRAM.format(tests=support, words=words)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        while process.poll() is None and read_bytes(place).count(b"\n") < many.TOGETHER:
            time.sleep(0.01)
        written = read_bytes(place)
        second = run(place)
        assert second.exit_code == 1
        assert f"another process is writing {place / 'm.jsonl'}: wait for it, or name another file" in second.output
        assert read_bytes(place) == written
        process.send_signal(signal.SIGKILL)
        output = process.communicate()[0].decode()
        assert process.returncode == -signal.SIGKILL, output
    finally:
        process.kill()
    assert 0 < len(read_bytes(place)) < len(whole)
    run(place)
    assert (place / "m.jsonl").read_bytes() == whole


def read_bytes(place) -> bytes:
    out = place / "m.jsonl"
    return out.read_bytes() if out.exists() else b""


def test_what_is_done_is_not_done_again(place, monkeypatch) -> None:
    run(place)
    changed = (place / "m.jsonl").stat().st_mtime_ns
    monkeypatch.setattr(quadmatch.models.load, "load", None)
    done = run(place)
    assert done.exit_code == 1
    assert "11 pairs were there already" in done.output
    assert (place / "m.jsonl").stat().st_mtime_ns == changed


def test_only_the_groups_that_are_missing_are_matched(place, monkeypatch) -> None:
    run(place)
    out = place / "m.jsonl"
    whole = out.read_bytes()
    out.write_bytes(b"".join(whole.splitlines(keepends=True)[:9]))
    seen = []
    match = groups.match_kept
    monkeypatch.setattr(groups, "match_kept", lambda m, pairs, **o: seen.append(len(pairs)) or match(m, pairs, **o))
    run(place)
    assert sum(seen) == 3
    assert out.read_bytes() == whole


def test_a_file_of_another_list_is_not_touched(place) -> None:
    run(place)
    lines = (place / "m.jsonl").read_bytes()
    rows = (place / "pairs.csv").read_text().splitlines()
    for changed, reason in (
        ([rows[0], rows[2], rows[1], *rows[3:]], "another pair"),
        (rows[:5], "more than the 4 pairs"),
    ):
        (place / "pairs.csv").write_text("\n".join(changed))
        done = run(place)
        assert done.exit_code == 1
        assert reason in done.output
        assert (place / "m.jsonl").read_bytes() == lines
    (place / "pairs.csv").write_text("\n".join(rows))
    assert "made with constraint True" in run(place, "--no-constraint").output
    assert "made with partial False" in run(place, "--partial").output
    for other in (b"important", b"important\n", b"[1]\n"):
        (place / "m.jsonl").write_bytes(other)
        assert "this command wrote" in run(place).output
        assert (place / "m.jsonl").read_bytes() == other


def make_rows(pairs):
    parts = [(f"{i}.png", f"{i}.json", None) for i in range(PICTURES)]
    return [many.Row(number, parts[i], parts[j]) for number, (i, j) in enumerate(pairs, 1)]


def test_features_are_computed_once_and_memory_is_bounded(place) -> None:
    pairs = [(i, j) for i in range(PICTURES) for j in range(PICTURES)]
    rows = make_rows(pairs)
    files, reports = [], []
    for memory in (2**30, 0):
        out = place / f"{memory}.jsonl"
        load = lambda name, precision: make_matcher()  # noqa: E731
        reports.append(many.match_many(rows, place, out, load, Settings(), memory=memory))
        files.append(out.read_bytes())
    assert reports[0].prepared == PICTURES
    assert reports[1].prepared > PICTURES
    assert files[0] == files[1]


def test_what_is_needed_latest_is_dropped_first(place) -> None:
    rows = make_rows([(0, 1), (0, 2), (1, 2), (0, 1)])
    kept = Kept(make_matcher(), rows, place)
    for row in rows[:2]:
        for view in row.views:
            kept.get(view)
    kept.release(2)
    assert {image for (image, *_), _ in kept.kept} == {"0.png", "1.png", "2.png"}
    kept.memory = 2 * measure(next(iter(kept.kept.values())))
    kept.release(2)
    assert {image for (image, *_), _ in kept.kept} == {"1.png", "2.png"}
    kept.release(4)
    assert not kept.kept


def test_a_group_that_fails_is_tried_pair_by_pair(place, monkeypatch) -> None:
    match = groups.match_kept

    def fail(matcher, pairs, **options):
        if len(pairs) > 1 or (pairs and pairs[0][0] is pairs[0][1]["0"]):
            raise RuntimeError("can't allocate memory")
        return match(matcher, pairs, **options)

    monkeypatch.setattr(groups, "match_kept", fail)
    out = place / "o.jsonl"
    report = many.match_many(make_rows([(0, 1), (2, 2), (1, 3)]), place, out, lambda *_: make_matcher(), Settings())
    assert report.errors == [(2, "can't allocate memory")]
    assert len(out.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no column image_a"),
        ("a.png,a.json,b.png,b.json\n", "has no column image_a"),
        ("image_a,image_b,points\n", "unknown column 'points'"),
        ("image_a,image_b,box_a\na,b,1,2,3,4\n", "row 1 has more cells than the heading"),
        ("\xff", "image_a"),
    ],
)
def test_a_bad_list_is_refused(tmp_path, text, reason) -> None:
    (tmp_path / "p.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=reason):
        read_pairs(tmp_path / "p.csv")
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_pairs(tmp_path / "none.csv")


def test_an_empty_list_gives_an_empty_file(place) -> None:
    (place / "pairs.csv").write_text("image_a,image_b\n")
    done = run(place)
    assert done.exit_code == 0, done.output
    assert (place / "m.jsonl").read_bytes() == b""
