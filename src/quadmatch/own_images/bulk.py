"""Thousands of pairs of a user's pictures: features once a picture, a line of JSON a pair, kills survived."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from quadmatch.datasets.turning import list_orientations
from quadmatch.files import check_target, name_file, settle, take_lock
from quadmatch.matcher import Matcher
from quadmatch.own_images.answer import Settings, dump_line
from quadmatch.own_images.engine import Engine, Lines, Report, Work, match_here
from quadmatch.own_images.kept import MEMORY
from quadmatch.own_images.pair_lists import Row
from quadmatch.own_images.parquet import check_parquet, is_parquet, name_lines, read_parquet, write_parquet
from quadmatch.own_images.places import Folder

TOGETHER = 32
"""Pairs that are matched, and written, together; a run that was killed goes on at the next such group."""

Progress = Callable[[int, int], None]


def match_many(
    rows: Sequence[Row],
    folder: Folder,
    out: Path,
    load: Callable[[str, str | None], Matcher],
    settings: Settings,
    *,
    memory: int = MEMORY,
    progress: Progress | None = None,
    engine: Engine = match_here,
) -> Report:
    """Match the pairs and write a line for each, in order; what `out` has already is not done again.

    `load` gives the matcher from a model's name and a precision. Names in the rows are relative to `folder`. A table
    (`.parquet`) is made of a file of lines when all are there.
    """
    if is_parquet(out):
        if known := _read_table(out, rows, settings):
            return known
        lines = name_lines(out)
        report = match_many(rows, folder, lines, load, settings, memory=memory, progress=progress, engine=engine)
        write_parquet(lines, out)
        lines.unlink()
        return report
    rows = [replace(row, orientations=list_orientations(settings.orientation)) for row in rows]
    with open_lines(out) as file:
        done, precision = resume(out, rows, settings)
        report = Report(len(rows), len(done), list_errors(done), count_pictures(rows[len(done) :]))
        settings = replace(settings, precision=precision or settings.precision)
        groups = [rows[start : start + TOGETHER] for start in range(len(done), len(rows), TOGETHER)]
        if progress:
            progress(len(done), len(rows))
        if groups:
            with closing(engine(Work(groups, folder, load, settings, memory), report)) as parts:
                _write(file, parts, report, progress)
    return report


def _write(file: IO[bytes], parts: Iterable[Lines], report: Report, progress: Progress | None) -> None:
    """Add each group's lines to the file, on the disk itself, and take note of what is wrong in them."""
    written = report.resumed
    for lines in parts:
        file.write("".join(f"{dump_line(line)}\n" for line in lines).encode(errors="backslashreplace"))
        settle(file)
        report.errors += list_errors(lines)
        written += len(lines)
        if progress:
            progress(written, report.pairs)


@contextmanager
def open_lines(out: Path) -> Iterator[IO[bytes]]:
    """The file that lines are added to, this process's alone; one that was made for them and got none is removed."""
    check_target(out)
    made = not out.exists()
    with name_file(out), out.open("ab") as file:
        take_lock(file, f"another process is writing {out}: wait for it, or name another file")
        try:
            yield file
        except BaseException:
            if made and not os.fstat(file.fileno()).st_size:
                out.unlink()
            raise


def _read_table(out: Path, rows: Sequence[Row], settings: Settings) -> Report | None:
    """The report of a table that is there already, if it is of these pairs and settings."""
    check_parquet(out)
    if not out.exists():
        return None
    done = check_lines(out, [*read_parquet(out)], rows, settings)
    if len(done) < len(rows):
        raise ValueError(f"{out} has {len(done)} pairs, fewer than the {len(rows)} of this list: name another")
    return Report(len(rows), len(done), list_errors(done))


def list_errors(lines: Sequence[dict[str, Any]]) -> list[tuple[int, str]]:
    """Row and message of each pair that could not be matched."""
    return [(line["row"], line["error"]) for line in lines if "error" in line]


def count_pictures(rows: Sequence[Row]) -> int:
    """Different pictures, with their keypoints and boxes, in some pairs."""
    return len({named for row in rows for named in (row.a, row.b)})


def resume(out: Path, rows: Sequence[Row], settings: Settings) -> tuple[list[dict[str, Any]], str | None]:
    """Lines of whole groups that are in the file, which is cut after them, and the precision they were made with."""
    if not out.is_file():
        return [], None  # A pipe or a device keeps nothing that could be gone on with.
    content = out.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if not whole and not b'{"row": 1, '.startswith(content[:11]):
        raise ValueError(f"{out} is not a file that this command wrote: name another")
    # Not splitlines: a text in the line may hold other characters that Python takes for the end of a line.
    lines = check_lines(out, whole.split(b"\n")[:-1], rows, settings)
    kept = len(lines) if len(lines) == len(rows) else len(lines) // TOGETHER * TOGETHER
    size = sum(len(line) + 1 for line in whole.split(b"\n")[:kept])
    if size < len(content):
        os.truncate(out, size)
    return lines[:kept], lines[0]["precision"] if lines else None


def check_lines(out: Path, lines: Sequence[bytes], rows: Sequence[Row], settings: Settings) -> Lines:
    """What an earlier run wrote, if it is of these pairs and these settings."""
    done = [_check_line(out, line, row, settings) for line, row in zip(lines, rows)]
    if len(lines) > len(rows):
        raise ValueError(f"{out} has {len(lines)} lines, more than the {len(rows)} pairs of this list: name another")
    return done


def _check_line(out: Path, line: bytes, row: Row, settings: Settings) -> dict[str, Any]:
    """A line of an earlier run, if it is of this pair and these settings."""
    again = "name another file, or remove this one"
    try:
        found: dict[str, Any] = json.loads(line)
        same = {key: found.get(key) for key in row.to_json()} == row.to_json()
    except (ValueError, AttributeError):
        raise ValueError(f"{out}, line {row.number} is not one that this command wrote: {again}") from None
    if not same:
        raise ValueError(f"{out}, line {row.number} is of another pair than row {row.number} of the list: {again}")
    wanted = settings.to_json() | {"precision": found.get("precision")}
    if settings.partial is not None and "error" not in found:
        wanted["partial"] = settings.partial
    if changed := [key for key, value in wanted.items() if found.get(key) != value]:
        key = changed[0]
        raise ValueError(f"{out} was made with {key} {found.get(key)!r}, not {wanted[key]!r}: {again}")
    return found
