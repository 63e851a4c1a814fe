"""The engine `ray` of `match-many`: pictures and groups of pairs shared out over the workers of a cluster.

A picture's features are computed once, by whoever is idle, and stay in Ray's object store, from where the worker
that matches a group takes them. What a group comes to is what the engine `local` computes of it, bit for bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from quadmatch.launch.cluster import Cluster, join_cluster
from quadmatch.launch.workers import Done, Job, Workers
from quadmatch.matcher import Matcher
from quadmatch.own_images.answer import Settings
from quadmatch.own_images.engine import Engine, Lines, Report, Work, record_precision
from quadmatch.own_images.groups import match_group
from quadmatch.own_images.kept import Ready, Uses, measure, prepare_view
from quadmatch.own_images.pair_lists import Row, View
from quadmatch.own_images.places import Folder, hide_secrets

AHEAD = 2
"""Groups for each worker that are begun before those before them are written."""


class Desk:
    """What a worker has: the model, and where the pictures are."""

    def __init__(self, load: Callable[[str, str | None], Matcher], folder: Folder, settings: Settings) -> None:
        self.matcher, self.folder = load(settings.model, settings.precision), folder
        self.settings = record_precision(settings, self.matcher)

    def describe(self) -> str | None:
        """The number format, which all workers must have in common."""
        return self.settings.precision

    def prepare(self, view: View) -> tuple[Ready | str, int | None]:
        """A picture with its features, or what is wrong with it; and its bytes, if nothing is."""
        ready = prepare_view(self.matcher, view, self.folder, self.settings.detect)
        return ready, None if isinstance(ready, str) else measure(ready)

    def match(self, group: Sequence[Row], views: Sequence[View], *pictures: Ready | str) -> tuple[None, Lines]:
        """The lines of a group, whose pictures were prepared."""
        ready = dict(zip(views, pictures))
        return None, match_group(self.matcher, ready.__getitem__, group, self.settings)


def match_on_ray(cluster: Cluster) -> Engine:
    """The engine of a cluster."""

    def run(work: Work, report: Report) -> Generator[Lines, None, None]:
        threads, recipe = cluster.count_threads(), (Desk, work.load, work.folder, work.settings)
        with join_cluster(cluster, work.memory) as count, Workers(count, threads, *recipe) as workers:
            yield from Schedule(workers, work, report).run()

    return run


class Schedule:
    """Which picture is prepared and which group is matched next, and what is kept for it."""

    def __init__(self, workers: Workers, work: Work, report: Report) -> None:
        self.workers, self.work, self.report, self.groups = workers, work, report, work.groups
        self.uses = Uses(row for group in work.groups for row in group)
        self.kept: dict[View, Any] = {}
        """References of pictures that were prepared."""
        self.sizes: dict[View, int] = {}
        self.asked: dict[View, set[int]] = {}
        """Pictures to prepare, each with the groups that wait for it."""
        self.pictures: deque[View] = deque()
        self.ready: deque[int] = deque()
        """Groups all of whose pictures are prepared."""
        self.views: dict[int, list[View]] = {}
        self.done: dict[int, Lines] = {}

    def run(self) -> Iterator[Lines]:
        """The lines of each group, in order."""
        work = self.work
        settings = replace(work.settings, precision=self.workers.start())
        self.workers.recipe = (Desk, work.load, work.folder, settings)
        self.workers.fill()
        begun, ahead = 0, AHEAD * self.workers.count
        for number, group in enumerate(self.groups):
            while begun < min(number + ahead, len(self.groups)):
                self._begin(begun)
                begun += 1
            while number not in self.done:
                self._give()
                if done := self.workers.wait():
                    self._take(done)
            yield self.done.pop(number)
            del self.views[number]
            self._release(group[-1].number, self.groups[begun - 1][-1].number)

    def _begin(self, number: int) -> None:
        """Take note of what a group needs."""
        views = (view for row in self.groups[number] for view in row.views)
        self.views[number] = list(dict.fromkeys(views))
        self._check(number)

    def _check(self, number: int) -> None:
        """Ask for the pictures that a group lacks; one that lacks none is ready."""
        missing = [view for view in self.views[number] if view not in self.kept]
        for view in missing:
            if view not in self.asked:
                self.pictures.append(view)
            self.asked.setdefault(view, set()).add(number)
        if not missing:
            self.ready.append(number)

    def _give(self) -> None:
        """Jobs for who is idle: to match what can be matched, else to prepare what is needed first."""
        while self.workers.idle and self.ready:
            number = self.ready.popleft()
            views, group = self.views[number], self.groups[number]
            if any(view not in self.kept for view in views):
                self._check(number)  # It was lost while the group waited.
                continue
            arguments = (group, views, *(self.kept[view] for view in views))
            self.workers.give(Job(number, f"rows {group[0].number} to {group[-1].number}", "match", arguments))
        while self.workers.idle and self.pictures:
            view = self.pictures.popleft()
            self.workers.give(Job(view, f"the picture {hide_secrets(view[0][0])}", "prepare", (view,)))

    def _take(self, done: Done) -> None:
        """Keep what was done, and see what it makes possible; what was lost is asked for again."""
        key: Any = done.key
        if isinstance(key, int):
            if done.lost:
                self._forget_lost(key)
                self._check(key)
            else:
                self.done[key] = done.small
        elif done.lost:
            self.pictures.appendleft(key)
        else:
            self.kept[key], self.sizes[key] = done.large, done.small or 0
            self.report.prepared += done.small is not None
            for number in sorted(self.asked.pop(key)):
                self._check(number)

    def _release(self, written: int, begun: int) -> None:
        """Forget what no pair needs that is not written yet, and what does not fit."""
        for view in self.uses.choose_dropped(written, self.sizes, self.work.memory, begun):
            del self.kept[view], self.sizes[view]

    def _forget_lost(self, number: int) -> None:
        """Forget pictures of a group that were on a machine which is gone; all of them, where that is not known."""
        views = [view for view in self.views[number] if view in self.kept]
        places = self.workers.ray.experimental.get_object_locations([self.kept[view] for view in views])
        gone = [view for view in views if not places[self.kept[view]]["node_ids"]]
        for view in gone or views:
            del self.kept[view], self.sizes[view]
