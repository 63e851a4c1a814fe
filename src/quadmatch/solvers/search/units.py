"""Powers of two by which very small or large numbers are divided: squares then neither vanish nor overflow.

A power of two changes no digit, and usual numbers are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.search.pairs import Pairs
from quadmatch.solvers.search.problem import Index, Vector

USUAL = 10
"""Largest entries from 2^−10 to 2^10 are no reason to scale anything."""


class Units(NamedTuple):
    """By how many powers of two the edges and the similarities of each pair were divided."""

    edges: Index
    linears: Index

    def restore(self, pairs: Pairs) -> Vector:
        """What the objective of each pair must be multiplied by.

        With e = 2^edges and l = 2^linears, weight·E − (1 − weight)·L of a scaled pair is this factor smaller
        than v·e²·E − (1 − v)·l·L, if v / (1 − v) is weight / (1 − weight) in the units of the caller.
        """
        if not len(pairs.linears):
            return np.ldexp(1.0, 2 * self.edges)
        with np.errstate(over="ignore"):  # An objective too small for a number is zero.
            return 1 / (np.ldexp(pairs.weights, -2 * self.edges) + np.ldexp(1 - pairs.weights, -self.linears))


class Peaks(NamedTuple):
    """The largest size of a number in each matrix of each pair; zero of one without numbers."""

    sources: Vector
    targets: Vector
    linears: Vector


def find_peaks(pairs: Pairs) -> Peaks:
    """What the sizes of all numbers are at most; not a number where one is not."""
    return Peaks(*(_find_largest(flat, length) for flat, length in zip(pairs[2:5], _measure_lengths(pairs))))


def _measure_lengths(pairs: Pairs) -> tuple[Index, Index, Index]:
    """How many numbers each matrix has."""
    small, large = pairs.sizes.T
    return small**2, large**2, small * large if len(pairs.linears) else 0 * small


def scale_pairs(pairs: Pairs, peaks: Peaks, together: bool) -> Units:
    """Divide edges, and similarities, so that the largest of a pair are about one; in place.

    `together` keeps the ratio of squared edges to similarities: a weight then means the same as before. Where
    the weight lets only one of them count, there is no ratio to keep, and each has its own power.
    """
    edges, linears = find_exponents(np.maximum(*peaks[:2])), find_exponents(peaks[2])
    if together and len(pairs.linears):
        alone, half = np.maximum(*peaks[:2]) == 0, (linears + 1) // 2
        edges = np.where(peaks[2] > 0, np.where(alone, half, np.maximum(edges, half)), edges)
        linears = 2 * edges
    for flat, exponents, length in zip(pairs[2:5], (edges, edges, linears), _measure_lengths(pairs)):
        if exponents.any() and len(flat):
            np.ldexp(flat, np.repeat(-exponents, length), out=flat)
    return Units(edges, linears)


def _find_largest(flat: Vector, lengths: Index) -> Vector:
    """The largest size of a number in each of the parts of a vector; zero of a part without numbers."""
    peaks, there = np.zeros(len(lengths)), lengths > 0
    if there.any():
        peaks[there] = np.maximum.reduceat(np.abs(flat), (np.cumsum(lengths) - lengths)[there])
    return peaks


def find_exponents(peaks: Vector) -> Index:
    """The power of two that brings each number near one; 0 of zero and of usual numbers."""
    exponents = np.frexp(peaks)[1].astype(np.int64) - 1
    return np.where((peaks > 0) & (np.abs(exponents) > USUAL), exponents, 0)


def scale_matrices(matrices: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Each matrix divided by a power of two of its own; whole numbers and usual ones as they are."""
    peaks = np.array([float(np.abs(one).max(initial=0)) if one.dtype.kind == "f" else 1.0 for one in matrices])
    exponents = find_exponents(peaks)
    return [np.ldexp(one, -power) if power else one for one, power in zip(matrices, exponents.tolist())]
