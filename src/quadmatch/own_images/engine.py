"""Who matches the groups of a list of pairs: what is asked of an engine, and the engine of one process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quadmatch.matcher import Matcher
from quadmatch.own_images.answer import Settings
from quadmatch.own_images.groups import match_group
from quadmatch.own_images.kept import Kept
from quadmatch.own_images.pair_lists import Row
from quadmatch.own_images.places import Folder

Lines = list[dict[str, Any]]


@dataclass
class Report:
    """What came of a list of pairs."""

    pairs: int
    resumed: int
    """Pairs that were done before."""
    errors: list[tuple[int, str]] = field(default_factory=list)
    """Row and message of each pair that could not be matched."""
    pictures: int = 0
    """Different pictures of the pairs that were not done before."""
    prepared: int = 0
    """Times that features were computed; more than `pictures` where pictures were turned or features were lost."""


@dataclass(frozen=True)
class Work:
    """What is to be done, for whoever does it."""

    groups: Sequence[Sequence[Row]]
    folder: Folder
    """What the names in the rows are relative to."""
    load: Callable[[str, str | None], Matcher]
    """Gives the matcher from a model's name and a precision."""
    settings: Settings
    memory: int
    """Bytes of features that may be kept for pairs to come."""


Engine = Callable[[Work, Report], Generator[Lines, None, None]]
"""Gives the lines of each group, in order, and counts in the report what it prepared."""


def match_here(work: Work, report: Report) -> Generator[Lines, None, None]:
    """The engine of one process: one group after the other."""
    matcher = work.load(work.settings.model, work.settings.precision)
    settings = record_precision(work.settings, matcher)
    rows = [row for group in work.groups for row in group]
    kept = Kept(matcher, rows, work.folder, settings.detect, work.memory)
    for group in work.groups:
        lines = match_group(matcher, kept.get, group, settings)
        kept.release(group[-1].number)
        report.prepared = kept.prepared
        yield lines


def record_precision(settings: Settings, matcher: Matcher) -> Settings:
    """The settings with the number format that a matcher has."""
    return replace(settings, precision=str(getattr(matcher.features, "precision", "unknown")))
