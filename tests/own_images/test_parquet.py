"""A table holds what the lines hold, appears whole, and is gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from own_pictures import POINTS, draw_pixels, make_matcher
from PIL import Image
from pyarrow.parquet import read_table

import quadmatch.own_images.bulk as many
from quadmatch.own_images.answer import Settings
from quadmatch.own_images.pair_lists import Row
from quadmatch.own_images.parquet import build_schema

NAMES = [("0.png", "0.json", None), ("1.png", "1.json", "1,2,40,30"), ("none.png", "0.json", None)]


@pytest.fixture
def rows(tmp_path, monkeypatch) -> list[Row]:
    monkeypatch.setattr(many, "TOGETHER", 2)
    for number in range(2):
        Image.fromarray(draw_pixels(number)).save(tmp_path / f"{number}.png")
        names = [f"point {place}" for place in range(len(POINTS))]
        content = POINTS.tolist() if number else {"points": POINTS.tolist(), "names": names}
        (tmp_path / f"{number}.json").write_text(json.dumps(content))
    pairs = [(0, 1), (1, 0), (2, 0), (0, 0), (1, 1)]
    return [Row(number, NAMES[a], NAMES[b]) for number, (a, b) in enumerate(pairs, 1)]


def run(rows, out: Path, settings: Settings | None = None, **options):
    return many.match_many(rows, out.parent, out, lambda *_: make_matcher(), settings or Settings(), **options)


def refuse(name: str, precision: str | None):
    pytest.fail("nothing is to be matched")


def test_a_table_holds_what_the_lines_hold(rows, tmp_path) -> None:
    lines, table = tmp_path / "m.jsonl", tmp_path / "m.parquet"
    assert run(rows, lines) == run(rows, table)
    found = read_table(table).to_pylist()
    expected = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row["row"] for row in found] == [1, 2, 3, 4, 5]
    for row, line in zip(found, expected, strict=True):
        assert {key: value for key, value in row.items() if key in line} == line
        assert all(value is None for key, value in row.items() if key not in line)
    # No field of a line is without a column; models that are trained for it say what is matchable.
    assert set(build_schema().names) == {key for line in expected for key in line} | {"matchable"}
    assert [one.name for one in tmp_path.glob("m.parquet*")] == ["m.parquet"]


def test_a_stopped_run_ends_in_the_same_table(rows, tmp_path) -> None:
    table, other = tmp_path / "m.parquet", tmp_path / "n.parquet"
    run(rows, table)

    def stop(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(rows, other, progress=stop)
    assert not other.exists()
    report = run(rows, other)
    assert report.resumed == 4
    assert other.read_bytes() == table.read_bytes()
    assert not list(tmp_path.glob("*.lines"))


def test_a_table_that_is_there_is_read_not_made(rows, tmp_path) -> None:
    table = tmp_path / "m.parquet"
    errors = run(rows, table).errors
    assert [row for row, _ in errors] == [3]
    before = table.read_bytes()
    again = many.match_many(rows, tmp_path, table, refuse, Settings())
    assert (again.resumed, again.errors) == (5, errors)
    for other, settings, reason in (
        (rows, Settings(constraint=False), "made with constraint True"),
        (rows[::-1], Settings(), "another pair"),
        (rows[:4], Settings(), "more than the 4 pairs"),
        ([*rows, rows[0]], Settings(), "has 5 pairs, fewer than the 6"),
    ):
        with pytest.raises(ValueError, match=reason):
            run(other, table, settings)
    assert table.read_bytes() == before
    table.write_bytes(b"important")
    with pytest.raises(ValueError, match=r"m\.parquet is not a file that this command wrote"):
        run(rows, table)
    assert table.read_bytes() == b"important"


def test_a_table_without_a_folder_is_refused_first(rows, tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        many.match_many(rows, tmp_path, tmp_path / "none" / "m.parquet", refuse, Settings())
