"""Points that match nothing: accuracy against their number, with the constraint and without (figure 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from quadmatch.drawing.curves import Curve, draw_grid
from quadmatch.evaluation.report import Conditions
from quadmatch.reproduce import voc, willow
from quadmatch.reproduce.items import Output, Row, Settings, Table
from quadmatch.reproduce.reuse import evaluate_row

NUMBERS = (0, 2, 4, 6, 8, 10)
KINDS = {"normal": "around the corner, N(0, 10²)", "uniform": "anywhere in the picture"}
SIGNS = ("+", "−")
"""With the constraint and without, as the paper marks them."""


@dataclass(frozen=True)
class Field:
    """A data set, and the methods that are tried on it."""

    title: str
    dataset: str
    rows: Mapping[str, tuple[Row, Row]]
    """Of each method the row with the constraint and the one without."""
    split: str = "test"
    pairs: int = 200
    seeds: int = 1

    def list_steps(self, settings: Settings) -> list[tuple[Field, str, str, int | None]]:
        """Every method with each sign and seed."""
        seeds = range(settings.count_seeds(self.seeds))
        return [
            (self, method, sign, seed)
            for method, rows in self.rows.items()
            for sign, row in zip(SIGNS, rows)
            for seed in (seeds if row.experiment else [None])
        ]


def take_methods(table: Table) -> dict[str, tuple[Row, Row]]:
    """The paper's three methods with the constraint and without it, as a table has them."""
    return {name: (table.rows[f"qc-{name}"], table.rows[name]) for name in ("DGM1", "PCA", "GMN")}


WILLOW = Field("Willow", "willow", take_methods(willow.TABLE))
VOC = Field("Pascal VOC", "pascal-voc", take_methods(voc.REDUCED), split="validation", pairs=50)
SHIPPED = Field(
    "Pascal VOC",
    "pascal-voc",
    {name: (Row(model=name), Row(model=name, constraint=False)) for name in ("qcattention-voc", "qcdgm2-voc")},
    split="validation",
    pairs=50,
)


def make_outliers(fields: Sequence[Field], settings: Settings) -> Output:
    """One panel for each data set and kind of outliers."""
    found: dict[tuple[str, str, str, str], list[list[dict[str, Any]]]] = {}
    steps = [step for field in fields for step in field.list_steps(settings)]
    for field, method, sign, seed in settings.follow(steps, _describe):
        row = field.rows[method][SIGNS.index(sign)]
        for kind in KINDS:
            curve = [_try(field, row, seed, kind, number, settings) for number in NUMBERS]
            found.setdefault((field.title, kind, method, sign), []).append(curve)
    curves = {key: _summarise(seeds) for key, seeds in found.items()}
    panels: dict[str, dict[str, Curve]] = {}
    for (title, kind, method, sign), (means, spreads) in curves.items():
        methods = list(next(field.rows for field in fields if field.title == title))
        line = Curve(NUMBERS, means, spreads, series=methods.index(method), dash=SIGNS.index(sign))
        panels.setdefault(f"{title}: {KINDS[kind]}", {})[f"{method} {sign}"] = line
    figure = draw_grid(panels, x_label="outliers in each graph", y_label="accuracy (%)")
    record = {"outliers": NUMBERS, "curves": [_record(key, *curves[key], found[key]) for key in curves]}
    lines = [["data set, outliers, method", *map(str, NUMBERS)]]
    for (title, kind, method, sign), (means, _) in curves.items():
        lines.append([f"{title}, {kind}, {method} {sign}", *(f"{mean:.1f}" for mean in means)])
    return Output(
        "Accuracy against the number of outliers (figure 6)", _caption(fields, found, settings), lines, record, figure
    )


def _describe(step: tuple[Field, str, str, int | None]) -> str:
    field, method, sign, seed = step
    return f"{field.title}, {method} {sign}" + ("" if seed is None else f", seed {seed}")


def _try(field: Field, row: Row, seed: int | None, kind: str, number: int, settings: Settings) -> dict[str, Any]:
    split = settings.split if settings.split and field.split != "test" else field.split
    conditions = Conditions(
        split=split,
        pairs=settings.count_pairs(field.pairs),
        outliers=number,
        outlier_kind=kind if number else "normal",  # None are of no kind, and are tried once.
    )
    return evaluate_row(row, seed, field.dataset, conditions, settings)


def _summarise(seeds: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[list[float], list[float] | None]:
    """Mean and spread over the seeds at each number of outliers; no spread for one seed."""
    columns = [[one["mean"]["accuracy"] for one in column] for column in zip(*seeds)]
    return [fmean(column) for column in columns], [stdev(column) for column in columns] if len(seeds) > 1 else None


def _record(
    key: tuple[str, str, str, str], means: list[float], spreads: list[float] | None, seeds: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    title, kind, method, sign = key
    first = seeds[0][0]
    return {
        "data set": title,
        "kind": kind,
        "method": method,
        "constraint": sign == "+",
        "model": first["model"],
        "mean": [round(mean, 3) for mean in means],
        "std": None if spreads is None else [round(spread, 3) for spread in spreads],
        "seeds": [one[0]["training_seed"] for one in seeds],
        **{name: first[name] for name in ("split", "protocol", "pairs", "pairs_hash", "date", "hardware", "commit")},
    }


def _caption(fields: Sequence[Field], found: Mapping[Any, Sequence[Sequence[Any]]], settings: Settings) -> str:
    """What the signs mean, and under which conditions each data set was tried."""
    firsts = {key[0]: seeds[0][0] for key, seeds in found.items()}
    conditions = "; ".join(
        f"{field.title}: split {firsts[field.title]['split']}, {firsts[field.title]['pairs']} pairs a class "
        f"(list {firsts[field.title]['pairs_hash']})"
        for field in fields
    )
    text = "+ with the constraint, − without; outliers are added to both graphs when matching, not in training, "
    text += f"and accuracy counts the true matches only. {conditions}"
    return text + ("; a quick look, not a result" if settings.quick else "")


def make_figure(settings: Settings) -> Output:
    """The paper's three methods on the chosen data sets."""
    chosen = [field for field in (WILLOW, VOC) if not settings.rows or field.dataset in settings.rows]
    return make_outliers(chosen, settings)


def make_shipped(settings: Settings) -> Output:
    """The strongest model that ships beside the strongest of the paper's kind."""
    return make_outliers([SHIPPED], settings)
