"""Features of a user's pictures, each computed once for all the pairs that it is in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from quadmatch.features.trunk import join_entries, pad_rows
from quadmatch.matcher import Matcher, split_results
from quadmatch.matching import Features
from quadmatch.result import MatchResult
from quadmatch.sides import Side, load_side, parse_box
from quadmatch.subjects import Subject, pair_up

MEMORY = 2**30
"""Bytes of features that are kept for pairs to come."""


class Part(NamedTuple):
    """One picture of a pair, as a list names it: what its features depend on."""

    image: str
    points: str | None
    box: str | None


@dataclass(frozen=True, eq=False)
class Ready:
    """A picture that can be matched."""

    side: Side
    subject: Subject

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        arrays = sum(array.nbytes for array in self.subject.entry.values())
        return arrays + self.subject.adjacency.nbytes + 3 * self.side.keypoints.points.nbytes


class Workshop:
    """Makes pictures ready when they are first needed, and drops them after their last use.

    Beyond `memory` bytes the one that is needed latest is dropped, and made ready again then.
    """

    def __init__(
        self,
        matcher: Matcher,
        pairs: Iterable[tuple[int, tuple[Part, Part]]],
        folder: Path,
        count: int | None = None,
        memory: int = MEMORY,
    ) -> None:
        self.matcher, self.folder, self.count, self.memory = matcher, folder, count, memory
        self.kept: dict[Part, Ready | Exception] = {}
        self.uses: dict[Part, deque[int]] = {}
        self.prepared = self.peak = 0
        for number, parts in pairs:
            for part in dict.fromkeys(parts):
                self.uses.setdefault(part, deque()).append(number)

    def get(self, part: Part) -> Ready:
        """The picture with its features; the same error each time where there is one."""
        if part not in self.kept:
            try:
                self.kept[part] = self._prepare(part)
            except (ValueError, TypeError, OSError, MemoryError) as error:
                self.kept[part] = error
        found = self.kept[part]
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found

    def _prepare(self, part: Part) -> Ready:
        if not part.image:
            raise ValueError("the name of a picture is empty")
        box = parse_box(part.box, "box")
        side = load_side(part.image, part.points, box, count=self.count, folder=self.folder)
        # One picture at a time: what goes through a network beside it would change its last bits.
        subject = self.matcher.prepare([side.request("image")])[0]
        self.prepared += 1
        return Ready(replace(side, pixels=None), condense(self.matcher, subject))

    def release(self, number: int) -> None:
        """Forget what no pair after this one needs, and what does not fit."""
        sizes = {part: 0 if isinstance(one, Exception) else one.nbytes for part, one in self.kept.items()}
        total = sum(sizes.values())
        self.peak = max(self.peak, total)
        for part in list(self.kept):
            uses = self.uses[part]
            while uses and uses[0] <= number:
                uses.popleft()
            if not uses:
                del self.kept[part]
                total -= sizes[part]
        latest = sorted(self.kept, key=lambda part: self.uses[part][0])
        while total > self.memory:
            total -= sizes[latest[-1]]
            del self.kept[latest.pop()]


@torch.no_grad()
def condense(matcher: Matcher, subject: Subject) -> Subject:
    """The subject with its finished features as what is kept: less than what they are computed from."""
    features: Features = matcher.features(*join_entries([subject.entry], subject.single, matcher.device))
    parts = {"local": features.local, "edge": features.edge, "whole": features.whole}
    entry = {part: values[0].cpu().numpy() for part, values in parts.items()}
    return replace(subject, entry=entry, single=frozenset({"whole"}))


def read_condensed(arrays: Mapping[str, Tensor], counts: Sequence[int]) -> Features:
    """Features of objects from what `condense` kept of them."""
    present = torch.arange(max(counts)) < torch.tensor(counts)[:, None]
    present = present.to(arrays["whole"].device)
    local, edge = pad_rows(arrays["local"], present), pad_rows(arrays["edge"], present)
    return Features(local, edge, arrays["whole"])


@torch.no_grad()
def match_ready(
    matcher: Matcher, pairs: Sequence[tuple[Subject, Subject]], *, partial: bool, constraint: bool
) -> list[MatchResult]:
    """One result for each pair of condensed subjects."""
    subjects = [subject for pair in pairs for subject in pair]
    source, target = range(0, len(subjects), 2), range(1, len(subjects), 2)
    results: list[MatchResult] = []
    for batch in pair_up(subjects, source, target, matcher.device):
        matching = matcher.compare(read_condensed(*batch.stored), batch.pairs)
        solution = matcher.decode(matching, batch.pairs, partial=partial, constraint=constraint)
        assignment = (matching if constraint else matcher.release(matching)).assignment
        results += split_results(batch.pairs.pairs, assignment, solution)
    return results
