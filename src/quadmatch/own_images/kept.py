"""Features of pictures, kept for the pairs to come: each is computed once for all the pairs that it is in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from quadmatch.datasets.picture import Picture
from quadmatch.features.prepared import Prepared
from quadmatch.features.trunk import join_entries, pad_rows
from quadmatch.matcher import Matcher
from quadmatch.matching import Features
from quadmatch.own_images.loading import load_picture
from quadmatch.own_images.pair_lists import Named, Row
from quadmatch.result import MatchResult

MEMORY = 2**30
"""Bytes of features that are kept for pairs to come."""

Ready = tuple[Picture, Prepared]
"""A picture that can be matched."""


class Kept:
    """Pictures of a list of pairs with their features: made when first needed, dropped after their last use.

    Beyond `memory` bytes the one that is needed latest is dropped, and made again then.
    """

    def __init__(
        self, matcher: Matcher, rows: Iterable[Row], folder: Path, count: int | None = None, memory: int = MEMORY
    ) -> None:
        self.matcher, self.folder, self.count, self.memory = matcher, folder, count, memory
        self.kept: dict[Named, Ready | Exception] = {}
        self.uses: dict[Named, deque[int]] = {}
        self.prepared = 0
        for row in rows:
            for named in dict.fromkeys((row.a, row.b)):
                self.uses.setdefault(named, deque()).append(row.number)

    def get(self, named: Named) -> Ready:
        """The picture with its features; the same error each time where there is one."""
        if named not in self.kept:
            try:
                self.kept[named] = self._prepare(*named)
            except (ValueError, TypeError, OSError, MemoryError) as error:
                self.kept[named] = error
        found = self.kept[named]
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found

    def _prepare(self, image: str, points: str | None, box: str | None) -> Ready:
        if not image:
            raise ValueError("the name of a picture is empty")
        picture = load_picture(image, points, box, count=self.count, folder=self.folder)
        # One picture at a time: what goes through a network beside it would change its last bits.
        prepared = self.matcher.prepare([picture])[0]
        self.prepared += 1
        return replace(picture, image=None), condense(self.matcher, prepared)

    def release(self, number: int) -> None:
        """Forget what no pair after this one needs, and what does not fit."""
        sizes = {named: measure(one) for named, one in self.kept.items()}
        total = sum(sizes.values())
        for named in list(self.kept):
            uses = self.uses[named]
            while uses and uses[0] <= number:
                uses.popleft()
            if not uses:
                del self.kept[named]
                total -= sizes[named]
        latest = sorted(self.kept, key=lambda named: self.uses[named][0])
        while total > self.memory:
            total -= sizes[latest[-1]]
            del self.kept[latest.pop()]


def measure(ready: Ready | Exception) -> int:
    """Bytes that a picture and its features hold."""
    return 0 if isinstance(ready, Exception) else ready[0].keypoints.points.nbytes + ready[1].nbytes


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


def match_kept(
    matcher: Matcher, pairs: Sequence[tuple[Ready, Ready]], *, partial: bool, constraint: bool
) -> list[MatchResult]:
    """One result for each pair of pictures that were kept."""
    prepared = [own for pair in pairs for _, own in pair]
    source, target = range(0, len(prepared), 2), range(1, len(prepared), 2)
    ways = matcher.match_ways(prepared, source, target, partial=partial, ways=(constraint,), read=read_condensed)
    return ways[0]
