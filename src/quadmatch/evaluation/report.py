"""What an evaluation counts and says: matches, figures of each class and their mean, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from quadmatch.drawing.tables import draw_table

if TYPE_CHECKING:
    from rich.table import Table

RARE = 10
"""Objects that a class needs to count in `mean_common`: with fewer, one keypoint moves the mean visibly."""


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
    """Right over true matches, summed over the pairs: as the field computes it; also called recall."""
    return _divide(counts.right, counts.true)


def accuracy_pairs(counts: Counts) -> float:
    """Mean over the pairs that have a true match of right over true: as the paper writes it."""
    known = counts.true > 0
    return _divide(counts.right[known] / counts.true[known], known)


def precision(counts: Counts) -> float:
    """Right over predicted matches, summed over the pairs."""
    return _divide(counts.right, counts.predicted)


def f1(counts: Counts) -> float:
    """Harmonic mean of precision and recall, over counts summed over the pairs."""
    return _divide(2 * counts.right, counts.predicted + counts.true)


@dataclass(frozen=True)
class Conditions:
    """All that a result depends on besides model and data."""

    split: str = "test"
    """The part of the data set that is evaluated."""
    protocol: str = "intersection"
    pairs: int | None = 1000
    """Pairs of each class; None: every pair once."""
    seed: int = 0
    """The seed of the list of pairs, and of outliers."""
    outliers: int = 0
    """Points that match nothing, added to each object."""
    outlier_kind: str = "normal"
    constraint: bool = True
    partial: bool = False
    decoding: Mapping[str, Any] | None = None
    """Keywords of `decode` in place of the model's own."""
    local_maps: float | None = None
    """Doubt of an assignment where local maps say otherwise, in place of the model's own; 0: no local maps."""


@dataclass(frozen=True)
class Scores:
    """In percent, from counts summed over a class's pairs; `accuracy_pairs` is the mean over pairs."""

    accuracy: float
    accuracy_pairs: float
    precision: float
    recall: float
    """The same number as `accuracy`, under the name that belongs to precision."""
    f1: float
    pairs: int
    objects: int


@dataclass(frozen=True)
class Evaluation:
    """What a matcher reached on a fixed list of pairs."""

    mean: Scores
    """Unweighted mean over the classes."""
    mean_common: Scores
    """The same without classes of few objects."""
    classes: Mapping[str, Scores]
    conditions: Conditions
    pairs_hash: str
    without_pairs: list[str]
    """Classes in which the protocol admits no pair; they do not count in the mean."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Model, data set, date, hardware and the like."""
    loss: float | None = None
    """Mean over the classes of the loss that was asked for; a batch of 100 pairs counts as one."""
    counts: Mapping[str, Counts] = field(default_factory=dict)
    """Matches of each pair by class, in the order of the list of pairs."""

    def to_json(self) -> dict[str, Any]:
        """As one dictionary of plain values; counts of single pairs are left out, and a loss that nobody asked for."""
        content: dict[str, Any] = asdict(replace(self, counts={}))
        content = {key: value for key, value in content.items() if key != "counts" and (key, value) != ("loss", None)}
        return {**content.pop("conditions"), **content.pop("about"), **content}

    def list_pairs(self) -> dict[str, dict[str, list[int]]]:
        """Right and true matches of every pair by class, so that two models can be compared on the same pairs."""
        return {name: {"right": one.right.tolist(), "true": one.true.tolist()} for name, one in self.counts.items()}

    def table(self) -> Table:
        """For printing with rich; where precision and recall are one number, it is printed once, as accuracy."""
        rare = [name for name, scores in self.classes.items() if scores.objects < RARE]
        columns = {"accuracy": "accuracy", "by pair": "accuracy_pairs"}
        if any(scores.precision != scores.recall for scores in self.classes.values()):
            columns = {"precision": "precision", "recall": "recall", "F1": "f1", "by pair": "accuracy_pairs"}
        columns |= {"pairs": "pairs", "objects": "objects"}
        means = {"mean": self.mean} | ({"mean, common": self.mean_common} if rare else {})
        lines = [["class", *columns]]
        for name, scores in [*self.classes.items(), *means.items()]:
            values = (getattr(scores, key) for key in columns.values())
            lines.append([name, *(f"{one:.1f}" if isinstance(one, float) else f"{one:,}" for one in values)])
        caption = f"{self.conditions.protocol}, pairs {self.pairs_hash}, percent"
        if rare:
            caption += f"; common: without {', '.join(rare)}, which have fewer than {RARE} objects"
        words = [str(self.about[key]) for key in ("model", "dataset") if key in self.about]
        title = " ".join([*words, self.conditions.split] if words else [])
        return draw_table(lines, title=title, caption=caption, totals=len(means))


def score(counts: Counts, objects: int) -> Scores:
    """The figures of one class."""
    measures = {"accuracy": accuracy, "accuracy_pairs": accuracy_pairs, "precision": precision}
    measures |= {"recall": accuracy, "f1": f1}
    percent = {name: round(100 * measure(counts), 4) for name, measure in measures.items()}
    return Scores(**percent, pairs=len(counts.right), objects=objects)


def average(scores: Sequence[Scores]) -> Scores:
    """Unweighted mean of the figures; pairs and objects are summed."""
    rows = np.array([astuple(one) for one in scores], dtype=np.float64)
    means, sums = rows.mean(0)[:-2].round(4).tolist(), rows.sum(0)[-2:].astype(int).tolist()
    return Scores(*means, *sums)
