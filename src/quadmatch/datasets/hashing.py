"""Random choices as a pure function of names and numbers.

A choice is a sort by a hash of what is chosen from, so it depends neither on the order of a list nor on
the stream of any library's generator, and is the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def hash_text(*parts: object) -> int:
    """64 bits of SHA-256 of the parts' texts."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def hash_texts(texts: Iterable[str]) -> Hashes:
    """`hash_text` of each."""
    return np.array([hash_text(text) for text in texts], dtype=np.uint64)


def mix(*values: Hashes | int) -> Hashes:
    """One well-mixed 64-bit number from several, broadcast; the order of the arguments matters."""
    state: Hashes = np.zeros((), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for value in values:
            state = (state ^ np.asarray(value, dtype=np.uint64)) + GOLDEN
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = np.asarray(state ^ (state >> np.uint64(31)))
    return state


def uniform(bits: Hashes) -> NDArray[np.float64]:
    """Hashes as numbers in (0, 1)."""
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53
