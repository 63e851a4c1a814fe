"""A group of pairs matched together: what every engine computes, so that all write the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quadmatch.matcher import Matcher
from quadmatch.own_images.answer import Settings, describe_match
from quadmatch.own_images.kept import Ready, match_kept
from quadmatch.own_images.pair_lists import Named, Row
from quadmatch.result import MatchResult


def match_group(
    matcher: Matcher, find: Callable[[Named], Ready | str], group: Sequence[Row], settings: Settings
) -> list[dict[str, Any]]:
    """The lines of some pairs; `find` gives a picture with its features, or what is wrong with it."""
    ready: dict[int, tuple[Ready, Ready]] = {}
    found: dict[int, MatchResult | str] = {}
    for row in group:
        a, b = find(row.a), find(row.b)
        if isinstance(a, str) or isinstance(b, str):
            found[row.number] = f"side a: {a}" if isinstance(a, str) else f"side b: {b}"
        else:
            ready[row.number] = a, b
    for partial in (False, True):
        chosen = [number for number, ((a, _), (b, _)) in ready.items() if settings.is_partial(a, b) == partial]
        pairs = [ready[number] for number in chosen]
        found |= zip(chosen, _try(matcher, pairs, partial, settings.constraint))
    return list(_describe(group, ready, found, settings))


def _describe(
    group: Sequence[Row], ready: dict[int, tuple[Ready, Ready]], found: dict[int, MatchResult | str], settings: Settings
) -> Iterator[dict[str, Any]]:
    """A line for each pair: its match, or what is wrong."""
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
