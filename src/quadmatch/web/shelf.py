"""The models that a visitor may choose from, of which only the last two used are kept in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from anyio.to_thread import run_sync

from quadmatch.matcher import Matcher
from quadmatch.models.load import DEFAULT, UNTRAINED, find_model, list_models, read_aliases, read_card
from quadmatch.own_images.warm_up import warm_up
from quadmatch.web.uploads import Refused

MOST = 2
"""Models in memory."""
ABOUT = {
    DEFAULT: "For pictures of any kind: trained and untrained features in consensus.",
    UNTRAINED: "Not trained on keypoints: best for one thing seen from two places.",
}


def describe_model(name: str) -> str:
    """One line on a shipped model."""
    if name in ABOUT:
        return ABOUT[name]
    card = read_card(find_model(name))
    figures = card.get("figures") or [{}]
    accuracy = figures[0].get("mean", {}).get("accuracy")
    reached = f"; {accuracy:.0f} % right on its {figures[0]['split']} pairs" if accuracy else ""
    return f"Trained on {figures[0].get('dataset', 'a data set')}, for two things of one kind{reached}."


class Shelf:
    """Models by name: the one that the server was started with, and with `load` those that ship."""

    def __init__(self, matcher: Matcher, name: str, load: Callable[[str], Matcher] | None = None) -> None:
        self.first, self.load = name, load
        self.loaded: dict[str, Matcher] = {name: matcher}
        """The one used last comes last."""
        shipped = [] if load is None else [one for one in list_models() if one not in read_aliases()]
        self.lines = {one: describe_model(one) for one in shipped}
        if name not in self.lines:
            self.lines = {name: "The model that this server was started with."} | self.lines
        self._turn = asyncio.Lock()

    def describe(self) -> list[dict[str, Any]]:
        """Name and one line of each, for the page."""
        return [{"name": name, "about": line} for name, line in self.lines.items()]

    async def take(self, name: str) -> Matcher:
        """A model, loaded if it is not at hand; the one that was not used for longest makes room."""
        if name not in self.lines:
            raise Refused(400, "no-model", f"There is no model {name[:60]!r} here; there are {', '.join(self.lines)}.")
        async with self._turn:
            if name not in self.loaded:
                while len(self.loaded) >= MOST:
                    self.loaded.pop(next(iter(self.loaded)))
                self.loaded[name] = await run_sync(self._load, name)
            matcher = self.loaded[name] = self.loaded.pop(name)
        return matcher

    def _load(self, name: str) -> Matcher:
        assert self.load is not None, "a server without `load` lists one model, which is loaded"
        matcher = self.load(name)
        warm_up(matcher)
        return matcher
