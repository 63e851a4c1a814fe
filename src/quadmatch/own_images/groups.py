"""A group of pairs matched together: what every engine computes, so that all write the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quadmatch.datasets.picture import Picture
from quadmatch.matcher import Matcher
from quadmatch.own_images.answer import Settings, describe_match
from quadmatch.own_images.kept import Ready, Tried, match_kept
from quadmatch.own_images.pair_lists import Row, View
from quadmatch.result import MatchResult


def match_group(
    matcher: Matcher, find: Callable[[View], Ready | str], group: Sequence[Row], settings: Settings
) -> list[dict[str, Any]]:
    """The lines of some pairs; `find` gives a picture with its features, or what is wrong with it."""
    pictures: dict[int, tuple[Picture, Picture]] = {}
    ready: dict[int, Tried] = {}
    found: dict[int, MatchResult | str] = {}
    for row in group:
        a, *views = (find(view) for view in row.views)
        good = [one for one in views if not isinstance(one, str)]
        if isinstance(a, str):
            found[row.number] = f"side a: {a}"
        elif len(good) < len(views):
            found[row.number] = f"side b: {next(one for one in views if isinstance(one, str))}"
        else:
            pictures[row.number] = a[0], good[0][0]
            ready[row.number] = a[1], {name: one for name, (_, one) in zip(row.orientations, good)}
    for partial in (False, True):
        chosen = [number for number, both in pictures.items() if settings.is_partial(*both) == partial]
        pairs = [ready[number] for number in chosen]
        found |= zip(chosen, _try(matcher, pairs, partial, settings.constraint))
    return list(_describe(group, pictures, found, settings))


def _describe(
    group: Sequence[Row],
    pictures: dict[int, tuple[Picture, Picture]],
    found: dict[int, MatchResult | str],
    settings: Settings,
) -> Iterator[dict[str, Any]]:
    """A line for each pair: its match, or what is wrong."""
    for row in group:
        result = found[row.number]
        if isinstance(result, str):
            yield row.to_json() | settings.to_json() | {"error": result}
        else:
            yield {"row": row.number} | describe_match(result, *pictures[row.number], settings)


def _try(matcher: Matcher, pairs: Sequence[Tried], partial: bool, constraint: bool) -> list[MatchResult | str]:
    """Results, or what is wrong: where a group fails (memory, say), each pair alone."""
    try:
        return [*match_kept(matcher, pairs, partial=partial, constraint=constraint)]
    except (ValueError, RuntimeError, MemoryError) as error:
        if len(pairs) == 1:
            return [str(error) or type(error).__name__]
    return [one for pair in pairs for one in _try(matcher, [pair], partial, constraint)]
