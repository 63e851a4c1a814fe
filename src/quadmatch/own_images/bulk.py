"""Thousands of pairs of a user's pictures: features once a picture, a line of JSON a pair, kills survived."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from quadmatch.files import check_target, settle, write_file
from quadmatch.matcher import Matcher
from quadmatch.own_images.answer import Settings, describe_match, dump_line
from quadmatch.own_images.kept import MEMORY, Kept, Ready, match_kept
from quadmatch.own_images.pair_lists import Row
from quadmatch.result import MatchResult

TOGETHER = 32
"""Pairs that are matched, and written, together; a run that was killed goes on at the next such group."""

Progress = Callable[[int, int], None]


@dataclass
class Report:
    """What came of a list of pairs."""

    pairs: int
    resumed: int
    """Pairs that were done before."""
    errors: list[tuple[int, str]] = field(default_factory=list)
    """Row and message of each pair that could not be matched."""
    prepared: int = 0
    """Pictures whose features were computed."""


def match_many(
    rows: Sequence[Row],
    folder: Path,
    out: Path,
    load: Callable[[str, str | None], Matcher],
    settings: Settings,
    *,
    memory: int = MEMORY,
    progress: Progress | None = None,
) -> Report:
    """Match the pairs and write a line for each, in order; what `out` has already is not done again.

    `load` gives the matcher from a model's name and a precision. Paths of the rows are below `folder`.
    """
    done, precision = resume(out, rows, settings)
    report = Report(len(rows), len(done))
    report.errors += [(line["row"], line["error"]) for line in done if "error" in line]
    if progress:
        progress(len(done), len(rows))
    if len(done) == len(rows):
        return report
    matcher = load(settings.model, precision or settings.precision)
    settings = replace(settings, precision=str(getattr(matcher.features, "precision", "unknown")))
    kept = Kept(matcher, rows[len(done) :], folder, settings.detect, memory)
    with out.open("ab") as file:
        for start in range(len(done), len(rows), TOGETHER):
            group = rows[start : start + TOGETHER]
            lines = list(_match_group(matcher, kept, group, settings))
            file.write("".join(f"{dump_line(line)}\n" for line in lines).encode(errors="backslashreplace"))
            settle(file)
            report.errors += [(line["row"], line["error"]) for line in lines if "error" in line]
            if progress:
                progress(start + len(group), len(rows))
    report.prepared = kept.prepared
    return report


def _match_group(matcher: Matcher, kept: Kept, group: Sequence[Row], settings: Settings) -> Iterator[dict[str, Any]]:
    """The lines of some pairs, whose features are computed first."""
    ready: dict[int, tuple[Ready, Ready]] = {}
    found: dict[int, MatchResult | str] = {}
    for row in group:
        sides: list[Ready] = []
        try:
            for named in (row.a, row.b):
                sides.append(kept.get(named))
            ready[row.number] = sides[0], sides[1]
        except (ValueError, TypeError, OSError, MemoryError) as error:
            found[row.number] = f"side {'ab'[len(sides)]}: {str(error) or type(error).__name__}"
    for partial in (False, True):
        chosen = [number for number, ((a, _), (b, _)) in ready.items() if settings.is_partial(a, b) == partial]
        pairs = [ready[number] for number in chosen]
        found |= zip(chosen, _try(matcher, pairs, partial, settings.constraint))
    kept.release(group[-1].number)
    for row in group:
        result = found[row.number]
        if isinstance(result, str):
            yield row.to_json() | settings.to_json() | {"error": result}
        else:
            (a, _), (b, _) = ready[row.number]
            yield {"row": row.number} | describe_match(result, a, b, settings)


def _try(
    matcher: Matcher, pairs: Sequence[tuple[Ready, Ready]], partial: bool, constraint: bool
) -> list[MatchResult | str]:
    """Results, or what is wrong: where a group fails (memory, say), each pair alone."""
    try:
        return [*match_kept(matcher, pairs, partial=partial, constraint=constraint)]
    except (ValueError, RuntimeError, MemoryError) as error:
        if len(pairs) == 1:
            return [str(error) or type(error).__name__]
    return [one for pair in pairs for one in _try(matcher, [pair], partial, constraint)]


def resume(out: Path, rows: Sequence[Row], settings: Settings) -> tuple[list[dict[str, Any]], str | None]:
    """Lines of whole groups that are in the file, which is cut after them, and the precision they were made with."""
    check_target(out)
    if out.exists() and not out.is_file():
        return [], None  # A pipe or a device keeps nothing that could be gone on with.
    if not out.exists():
        write_file(out, b"")
        return [], None
    content = out.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if not whole and not b'{"row": 1, '.startswith(content[:11]):
        raise ValueError(f"{out} is not a file that this command wrote: name another")
    # Not splitlines: a text in the line may hold other characters that Python takes for the end of a line.
    lines = [_check_line(out, line, row, settings) for line, row in zip(whole.split(b"\n"), rows) if line]
    count = whole.count(b"\n")
    if count > len(rows):
        raise ValueError(f"{out} has {count} lines, more than the {len(rows)} pairs of this list: name another")
    kept = len(lines) if len(lines) == len(rows) else len(lines) // TOGETHER * TOGETHER
    size = sum(len(line) + 1 for line in whole.split(b"\n")[:kept])
    if size < len(content):
        os.truncate(out, size)
    return lines[:kept], lines[0]["precision"] if lines else None


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
