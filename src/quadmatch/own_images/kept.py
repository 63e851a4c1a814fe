"""Features of pictures, kept for the pairs to come: each is computed once for all the pairs that it is in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from quadmatch.datasets.picture import Picture
from quadmatch.datasets.turning import Try, take_best, turn_picture
from quadmatch.features.prepared import Prepared
from quadmatch.features.trunk import join_entries, pad_rows
from quadmatch.matcher import Matcher
from quadmatch.matching import Features
from quadmatch.own_images.loading import load_picture
from quadmatch.own_images.pair_lists import Row, View
from quadmatch.own_images.places import Folder
from quadmatch.result import MatchResult

MEMORY = 2**30
"""Bytes of features that are kept for pairs to come."""

Ready = tuple[Picture, Prepared]
"""A picture as it was given, and what matching needs of it in the orientation in which it is seen."""


class Uses:
    """When each view of a picture is needed in a list of pairs: by the numbers of the pairs that it is in."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: dict[View, deque[int]] = {}
        for row in rows:
            for view in dict.fromkeys(row.views):
                self.rows.setdefault(view, deque()).append(row.number)

    def choose_dropped(self, number: int, sizes: Mapping[View, int], memory: int, started: int = 0) -> list[View]:
        """Of views of some bytes those that no pair after this one needs, and what exceeds `memory`, latest first.

        Pairs up to `started` are being worked on: what they need stays.
        """
        total, dropped, later = 0, [], []
        for view, size in sizes.items():
            uses = self.rows[view]
            while uses and uses[0] <= number:
                uses.popleft()
            if not uses:
                dropped.append(view)
                continue
            total += size
            later += [view] if uses[0] > started else []
        later.sort(key=lambda view: self.rows[view][0])
        while later and total > memory:
            dropped.append(later.pop())
            total -= sizes[dropped[-1]]
        return dropped


class Kept:
    """Pictures of a list of pairs with their features: made when first needed, dropped after their last use.

    Beyond `memory` bytes the one that is needed latest is dropped, and made again then.
    """

    def __init__(
        self, matcher: Matcher, rows: Iterable[Row], folder: Folder, count: int | None = None, memory: int = MEMORY
    ) -> None:
        self.matcher, self.folder, self.count, self.memory = matcher, folder, count, memory
        self.kept: dict[View, Ready | str] = {}
        self.uses = Uses(rows)
        self.prepared = 0

    def get(self, view: View) -> Ready | str:
        """The picture with its features, or what is wrong with it."""
        if view not in self.kept:
            self.kept[view] = prepare_view(self.matcher, view, self.folder, self.count)
            self.prepared += not isinstance(self.kept[view], str)
        return self.kept[view]

    def release(self, number: int) -> None:
        """Forget what no pair after this one needs, and what does not fit."""
        sizes = {view: measure(one) for view, one in self.kept.items()}
        for view in self.uses.choose_dropped(number, sizes, self.memory):
            del self.kept[view]


def prepare_view(matcher: Matcher, view: View, folder: Folder, count: int | None) -> Ready | str:
    """A picture of a list with its features, or what is wrong with it; `count` keypoints are detected at need."""
    (image, points, box), orientation = view
    try:
        if not image:
            raise ValueError("the name of a picture is empty")
        picture = load_picture(image, points, box, count=count, folder=folder)
        # One picture at a time: what goes through a network beside it would change its last bits.
        prepared = matcher.prepare([turn_picture(picture, orientation)])[0]
    except (ValueError, TypeError, OSError, MemoryError) as error:
        return str(error) or type(error).__name__
    return replace(picture, image=None), condense(matcher, prepared)


def measure(ready: Ready | str) -> int:
    """Bytes that a picture and its features hold."""
    return 0 if isinstance(ready, str) else ready[0].keypoints.points.nbytes + ready[1].nbytes


@torch.no_grad()
def condense(matcher: Matcher, prepared: Prepared) -> Prepared:
    """The picture with its finished features as its entry: less than what they are computed from."""
    features: Features = matcher.features(*join_entries([prepared.entry], prepared.single, matcher.device))
    parts = features.maps | {"whole": features.whole}
    entry = {part: values[0].cpu().numpy() for part, values in parts.items()}
    return replace(prepared, entry=entry, single=frozenset({"whole"}))


def read_condensed(arrays: Mapping[str, Tensor], counts: Sequence[int]) -> Features:
    """Features of pictures from what `condense` kept of them."""
    present = torch.arange(max(counts)) < torch.tensor(counts)[:, None]
    present = present.to(arrays["whole"].device)
    maps = {name: pad_rows(rows, present) for name, rows in arrays.items() if name != "whole"}
    return Features(maps, arrays["whole"])


Tried = tuple[Prepared, Mapping[str, Prepared]]
"""The first picture of a pair, and the second in each orientation in which it is tried."""


def match_kept(matcher: Matcher, pairs: Sequence[Tried], *, partial: bool, constraint: bool) -> list[MatchResult]:
    """One result for each pair of pictures that were kept: of its orientations the best."""
    prepared: list[Prepared] = []
    tries: list[Try] = []
    for number, (first, seen) in enumerate(pairs):
        start = len(prepared)
        prepared += [first, *seen.values()]
        tries += [Try(number, start, place, name) for place, name in enumerate(seen, start + 1)]
    source, target = [one.source for one in tries], [one.target for one in tries]
    ways = matcher.match_ways(prepared, source, target, partial=partial, ways=(constraint,), read=read_condensed)
    return take_best(tries, ways[0])
