"""Features of pictures that were seen of late, found again by content."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from itertools import count
from weakref import WeakKeyDictionary

import numpy as np

from quadmatch.datasets.picture import Picture
from quadmatch.datasets.pixels import read_pixels
from quadmatch.features.prepared import Prepared
from quadmatch.matcher import Matcher
from quadmatch.own_images.kept import condense

MEMORY = 2**28
"""Bytes of features that are kept."""

Key = tuple[int, bytes]
"""The number of a model, and the digest of a picture with its keypoints and its box."""


class Recent:
    """Finished features by the content of pictures; beyond `memory` bytes, what was not used for longest goes.

    A picture is found by all that its features depend on, its pixels, keypoints and box, and by nothing else. For one
    thread: none else may call it meanwhile.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self.memory, self.held = memory, 0
        self.made = self.found = 0
        """Pictures that were convolved, and those that were not."""
        self._kept: OrderedDict[Key, Prepared] = OrderedDict()
        self._models: WeakKeyDictionary[Matcher, int] = WeakKeyDictionary()
        self._numbers = count()

    def prepare(self, matcher: Matcher, pictures: Sequence[Picture]) -> list[Prepared]:
        """What `match_ways` needs of each picture, to be read by `read_condensed`."""
        # Numbers are never used twice, unlike addresses of models that were dropped.
        model = self._models.setdefault(matcher, next(self._numbers))
        keys = [(model, digest(picture)) for picture in pictures]
        ready = {key: self._kept[key] for key in keys if key in self._kept}
        missing = {key: picture for key, picture in zip(keys, pictures) if key not in ready}
        if missing:
            made = matcher.prepare(list(missing.values()))
            ready |= {key: condense(matcher, one) for key, one in zip(missing, made)}
        self.made, self.found = self.made + len(missing), self.found + len(pictures) - len(missing)
        for key in keys:
            self._keep(key, ready[key])
        return [ready[key] for key in keys]

    def _keep(self, key: Key, prepared: Prepared) -> None:
        if key not in self._kept:
            self.held += prepared.nbytes
        self._kept[key] = prepared
        self._kept.move_to_end(key)
        while self.held > self.memory:
            self.held -= self._kept.popitem(last=False)[1].nbytes


def digest(picture: Picture) -> bytes:
    """Equal for pictures whose pixels, keypoints and box are equal."""
    pixels = np.ascontiguousarray(read_pixels(picture.image, picture.name))
    points = np.ascontiguousarray(picture.keypoints.points, np.float64)
    found = hashlib.sha256(repr((pixels.shape, points.shape, picture.keypoints.box)).encode())
    found.update(pixels.data)
    found.update(points.data)
    return found.digest()
