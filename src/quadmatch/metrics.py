"""Accuracy, precision, recall and F1 from counts of matches."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor


class Counts(NamedTuple):
    """Matches of each pair; counts of several batches are concatenated or summed before a ratio is taken."""

    right: Int[Tensor, " B"]
    predicted: Int[Tensor, " B"]
    true: Int[Tensor, " B"]


def count_matches(permutation: Float[Tensor, "B N M"], truth: Bool[Tensor, "B N M"]) -> Counts:
    """Right, predicted and true matches of each pair; padding is zero in both."""
    predicted = permutation > 0.5
    return Counts((predicted & truth).sum((1, 2)), predicted.sum((1, 2)), truth.sum((1, 2)))


def _divide(part: Tensor, whole: Tensor) -> float:
    """Ratio of the sums, 0 where there is nothing to divide by."""
    return float(part.sum()) / max(float(whole.sum()), 1.0)


def accuracy(counts: Counts) -> float:
    """Right over true matches, summed over the pairs: as the field computes it."""
    return _divide(counts.right, counts.true)


def accuracy_pairs(counts: Counts) -> float:
    """Mean over the pairs that have a true match of right over true: as the paper writes it."""
    known = counts.true > 0
    return _divide(counts.right[known] / counts.true[known], known)


def precision(counts: Counts) -> float:
    """Right over predicted matches, summed over the pairs."""
    return _divide(counts.right, counts.predicted)


def recall(counts: Counts) -> float:
    """Right over true matches, summed over the pairs."""
    return _divide(counts.right, counts.true)


def f1(counts: Counts) -> float:
    """Harmonic mean of precision and recall, over counts summed over the pairs."""
    return _divide(2 * counts.right, counts.predicted + counts.true)
