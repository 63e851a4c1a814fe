"""What can be reproduced: tables with their rows, and figures; and what a user chooses for either."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from quadmatch.launch.cluster import Cluster

T = TypeVar("T")
QUICK_STEPS, QUICK_PAIRS = 10, 100
"""A quick look trains a tenth of the steps and tests so many pairs of a class."""
REUSED_SECONDS = 1.0
"""A step that took less was only read from disk and says nothing about how long others will take."""


@dataclass(frozen=True)
class Settings:
    """What a user chooses for a whole table or figure."""

    out: Path
    """Folder of runs, evaluations and results."""
    seeds: int | None = None
    """Runs of each row instead of the table's own number."""
    root: Path | None = None
    split: str | None = None
    """Evaluated instead of the table's own split."""
    quick: bool = False
    changes: tuple[str, ...] = ()
    """Changes of every experiment, as in `features.precision=float32`."""
    say: Callable[[str], None] = print
    rows: tuple[str, ...] = ()
    """What a figure shows of all that it may."""
    cluster: Cluster | None = None
    """Where a table's rows are trained and evaluated; None: here, one after the other."""

    def count_seeds(self, usual: int) -> int:
        """The number of runs of a row, where the table's own number is `usual`."""
        return self.seeds or (1 if self.quick else usual)

    def count_pairs(self, usual: int) -> int:
        """The number of tested pairs of a class, where the table's own number is `usual`."""
        return min(QUICK_PAIRS, usual) if self.quick else usual

    def follow(self, steps: Sequence[T], describe: Callable[[T], str]) -> Iterator[T]:
        """Each step in turn, announced with its number and an estimate of the time that is left."""
        times: list[float] = []
        for number, step in enumerate(steps):
            left = ""
            if times:
                minutes = sum(times) / len(times) * (len(steps) - number) / 60
                left = f" (at most about {minutes:.0f} minutes left)" if minutes >= 1 else ""
            self.say(f"{number + 1} of {len(steps)}: {describe(step)}{left}")
            began = perf_counter()
            yield step
            taken = perf_counter() - began
            times += [taken] if taken > REUSED_SECONDS else []


@dataclass(frozen=True)
class Row:
    """One row of a table: a model that is trained for it, or one that is there already, and how it is used."""

    experiment: str | None = None
    """Trained once for each seed."""
    model: str | None = None
    """Taken as it is, instead of an experiment."""
    changes: tuple[str, ...] = ()
    """Changes of the experiment, as in `training.steps=300`."""
    start: tuple[Row, ...] = ()
    """Trained first: the experiment begins with the mean of their parameters, and goes on with the next seed, on
    other batches."""
    constraint: bool = True
    partial: bool = False
    decoding: Mapping[str, Any] | None = None
    """Keywords of `decode` in place of the model's own."""
    local_maps: float | None = None
    """Doubt of an assignment where local maps say otherwise, in place of the model's own; 0: no local maps."""
    references: str | None = None
    """A split whose labelled objects vote on the names of keypoints at test time."""
    paper: str | None = None
    """The paper's row that it stands beside, by its name in published.toml."""

    def __post_init__(self) -> None:
        if (self.experiment is None) == (self.model is None):
            raise ValueError("a row needs an experiment or a model, and not both")

    def count_starts(self) -> int:
        """How many trainings come before its own."""
        return max((1 + one.count_starts() for one in self.start), default=0)


@dataclass(frozen=True)
class Table:
    """Rows that are evaluated alike and printed beside a table of the paper."""

    about: str
    """One line for `quadmatch reproduce --help`."""
    published: str
    """The paper's table, by its name in published.toml."""
    dataset: str
    rows: Mapping[str, Row]
    split: str = "test"
    protocol: str = "intersection"
    metric: str = "accuracy"
    pairs: int = 1000
    seeds: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of the data set's loader."""
    compared: Sequence[tuple[str, str]] = ()
    """Rows of which the first is set against the second, pair by pair."""
    note: str = ""
    """What else has to be said under the table, such as its budget."""
    folds: int = 0
    """Parts of the training split, each tested by what the others train; 0 where `split` is tested."""


@dataclass(frozen=True)
class Output:
    """What a table or figure has come to: text and numbers to print and keep, and perhaps a picture."""

    title: str
    caption: str
    lines: Sequence[Sequence[str]]
    """A table of text, its heading first; empty if there is none."""
    record: Mapping[str, Any]
    """Kept as JSON."""
    picture: Picture | None = None
    totals: int = 0
    """Lines at the end that sum up the others."""


@dataclass(frozen=True)
class Figure:
    """A picture and the numbers that it shows."""

    about: str
    """One line for `quadmatch reproduce --help`."""
    make: Callable[[Settings], Output]
    """Trains and evaluates through `reuse`, and draws; where files go is not its concern."""
    rows: tuple[str, ...] = ()
    """What it shows, where that is several things; what is chosen of them is in the settings."""


WITHOUT = ("constraint=none",)
"""Changes of an experiment that train and use a network without the quadratic constraint."""
