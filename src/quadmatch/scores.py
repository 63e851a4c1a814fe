"""The figures of an evaluation: of each class, their mean, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from quadmatch import metrics
from quadmatch.metrics import Counts

if TYPE_CHECKING:
    from rich.table import Table

RARE = 10
"""Objects that a class needs to count in `mean_common`: with fewer, one keypoint moves the mean visibly."""


@dataclass(frozen=True)
class Scores:
    """In percent, from counts summed over a class's pairs; `accuracy_pairs` is the mean over pairs."""

    accuracy: float
    accuracy_pairs: float
    precision: float
    recall: float
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
    classes: dict[str, Scores]
    protocol: str
    pairs_hash: str
    seed: int
    constraint: bool
    partial: bool
    without_pairs: list[str]
    """Classes in which the protocol admits no pair; they do not count in the mean."""
    about: dict[str, Any] = field(default_factory=dict)
    """Model, data set, split, date, hardware and the like."""

    def to_json(self) -> dict[str, Any]:
        """As one dictionary of plain values."""
        content: dict[str, Any] = asdict(self)
        about: dict[str, Any] = content.pop("about")
        return content | about

    def table(self) -> Table:
        """For printing with rich."""
        return _draw(self)


def score(counts: Counts, objects: int) -> Scores:
    """The figures of one class."""
    figures = {
        "accuracy": metrics.accuracy(counts),
        "accuracy_pairs": metrics.accuracy_pairs(counts),
        "precision": metrics.precision(counts),
        "recall": metrics.recall(counts),
        "f1": metrics.f1(counts),
    }
    percent = {name: round(100 * figure, 4) for name, figure in figures.items()}
    return Scores(**percent, pairs=len(counts.right), objects=objects)


def average(scores: Sequence[Scores]) -> Scores:
    """Unweighted mean of the figures; pairs and objects are summed."""
    rows = np.array([astuple(one) for one in scores], dtype=np.float64)
    means, sums = rows.mean(0)[:-2].round(4).tolist(), rows.sum(0)[-2:].astype(int).tolist()
    return Scores(*means, *sums)


def _draw(evaluation: Evaluation) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    about = evaluation.about
    heading = " ".join(str(about[key]) for key in ("model", "dataset", "split") if key in about)
    caption = f"{evaluation.protocol}, pairs {evaluation.pairs_hash}, percent"
    rare = [name for name, scores in evaluation.classes.items() if scores.objects < RARE]
    if rare:
        caption += f"; common: without {', '.join(rare)}, which have fewer than {RARE} objects"
    table = Table(title=heading or None, caption=caption, box=SIMPLE, padding=(0, 0, 0, 1))
    table.add_column("class", no_wrap=True)
    for name in ("accuracy", "by pair", "precision", "recall", "F1", "pairs", "objects"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, scores in evaluation.classes.items():
        table.add_row(name, *_format(scores))
    table.add_section()
    table.add_row("mean", *_format(evaluation.mean), style="bold")
    if rare:
        table.add_row("mean, common", *_format(evaluation.mean_common))
    return table


def _format(scores: Scores) -> list[str]:
    return [f"{value:.1f}" if isinstance(value, float) else f"{value:,}" for value in astuple(scores)]
