"""Imports scipy and numba, and loads compiled loops, before a user waits for them."""

from __future__ import annotations

import contextlib
from threading import Thread

import numpy as np
import torch

from quadmatch.datasets.picture import make_picture
from quadmatch.decode import decode
from quadmatch.delaunay import delaunay
from quadmatch.matcher import Matcher
from quadmatch.matching import Matching


def load_ahead() -> Thread:
    """Import the libraries of triangulation and decoding in a thread, and load their compiled loops.

    While pictures are convolved, Python itself idles: a first match takes half a second less. Not a daemon: an
    interpreter that ends amid an import may crash, so it waits.
    """
    thread = Thread(target=_use_once, name="load ahead")
    thread.start()
    return thread


def _use_once() -> None:
    # What is broken shows where it is needed, with the user's own data.
    with contextlib.suppress(Exception):
        delaunay(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 2.0]]))
        square = torch.eye(3)[None]
        decode(Matching(square, square, square, square), square >= 0, threshold=0.5)


def warm_up(matcher: Matcher) -> None:
    """Match a small picture to itself, so that what a server loads or compiles on first use is there."""
    random = np.random.default_rng(0)
    picture = random.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    prepared = matcher.prepare([make_picture(picture, random.uniform(8, 56, (12, 2)))])
    matcher.match_ways(prepared, [0], [0])
