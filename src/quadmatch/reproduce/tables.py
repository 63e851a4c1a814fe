"""A table: its rows trained and evaluated for each seed, averaged, and set beside the paper's."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from statistics import fmean, stdev
from typing import Any

from quadmatch.evaluation.report import Conditions
from quadmatch.reproduce.items import Output, Row, Settings, Table
from quadmatch.reproduce.paired import Comparison, compare_rows
from quadmatch.reproduce.reuse import evaluate_row, list_lasting
from quadmatch.reproduce.rows import tell_network

KEPT = ("training_seed", "pairs_hash", "date", "hardware", "commit", "precision", "seconds")
"""What a table's record says of each evaluation besides its mean."""
Keep = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Step = tuple[str, int | None]
"""A row by its label, and the seed that it is trained with, if it is."""


@dataclass(frozen=True)
class RowResult:
    """Figures of one row in percent, class by class and `mean`."""

    label: str
    mean: Mapping[str, float]
    """Over the seeds."""
    std: Mapping[str, float | None]
    """Standard deviation over the seeds; None for one."""
    paper: Mapping[str, float]
    """Empty where the paper has no such row."""

    def describe(self, name: str) -> str:
        """As in `96.4 ± 0.3`."""
        spread = self.std[name]
        return f"{self.mean[name]:.1f}" + ("" if spread is None else f" ± {spread:.1f}")


def make_table(table: Table, settings: Settings, keep: Keep | None = None) -> Output:
    """Train and evaluate every row for every seed, or reuse what is there; `keep` adds rows of an earlier record."""
    title, published = read_published(table.published)
    results: dict[str, list[dict[str, Any]]] = {}
    for label, seed in settings.follow(list_steps(table, settings), lambda one: one[0] + name_turn(table, one[1])):
        results.setdefault(label, []).append(reproduce_row(table, table.rows[label], seed, settings))
    record: dict[str, Any] = {
        "metric": table.metric,
        "changes": list_lasting(settings.changes),
        "rows": {
            label: summarise(results[label], table.metric, published.get(row.paper or "", {}))
            for label, row in table.rows.items()
        },
        "compared": {name: asdict(one) for name, one in compare_all(table, results).items()},
    }
    first = results[next(iter(table.rows))][0]
    caption = describe_conditions(first, settings.count_seeds(table.folds or table.seeds), settings)
    return show_table(title, caption + (f". {table.note}" if table.note else ""), keep(record) if keep else record)


def show_table(title: str, caption: str, record: Mapping[str, Any]) -> Output:
    """A record as a table of text, its comparisons below."""
    rows = [RowResult(label, row["mean"], row["std"], row["paper"]) for label, row in record["rows"].items()]
    lines, totals = list_lines(rows), 1
    if len(lines[0]) > len(lines):  # More methods than classes: a line a method is easier to read.
        lines, totals = [list(line) for line in zip(*lines)], 0
    caption += "".join(f"\n\n{name}: {Comparison(**one)}." for name, one in record["compared"].items())
    return Output(title, caption, lines, record, totals=totals)


def compare_all(table: Table, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Comparison]:
    """Each of the table's comparisons whose rows are both there."""
    return {
        f"{first} against {second}": compare_rows(results[first], results[second])
        for first, second in table.compared
        if first in results and second in results
    }


def list_steps(table: Table, settings: Settings) -> list[Step]:
    """What is trained and evaluated for a table, in the order of its rows."""
    seeds = range(settings.count_seeds(table.folds or table.seeds))
    return [(label, seed) for label, row in table.rows.items() for seed in (seeds if row.experiment else [None])]


def name_turn(table: Table, seed: int | None) -> str:
    """How a seed, or the fold that takes its place, is told after a row's label."""
    if seed is None:
        return ""
    return f", fold {seed + 1} of {table.folds}" if table.folds else f", seed {seed}"


def reproduce_row(table: Table, row: Row, seed: int | None, settings: Settings) -> dict[str, Any]:
    """The evaluation of a row's model, which is trained with that seed, or without that fold, if it is not there."""
    split = settings.split or table.split
    there = [pair for pair in table.compared if table.rows.keys() >= set(pair)]
    compared = any(table.rows[label] is row for pair in there for label in pair)
    if table.folds:
        part, seed = f"{(seed or 0) + 1}-of-{table.folds}", 0
        split, row = f"fold-{part}", replace(row, changes=(*row.changes, f"data.split=rest-{part}"))
    conditions = Conditions(split=split, protocol=table.protocol, pairs=settings.count_pairs(table.pairs))
    return evaluate_row(row, seed, table.dataset, conditions, settings, table.options, by_pair=compared)


def read_published(table: str) -> tuple[str, dict[str, dict[str, float]]]:
    """Title of a table of the paper, and its rows: figures by class and `mean`, or `mean` alone.

    Rows that others published and the paper left out are among them (`TABLE-elsewhere`).
    """
    text = (resources.files("quadmatch.reproduce") / "published.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    rows: dict[str, dict[str, float]] = {}
    for content in (tables.get(f"{table}-elsewhere", {"rows": {}}), tables[table]):
        rows |= {name: dict(zip(content["columns"], figures)) for name, figures in content["rows"].items()}
    return tables[table]["title"], rows


def list_lines(rows: Sequence[RowResult]) -> list[list[str]]:
    """Heading, then a line a class with our figure and the paper's of each method, and the mean last."""
    names = sorted({name for row in rows for name in row.mean} - {"mean"})
    columns = [pair for row in rows for pair in ((row, False), (row, True)) if row.paper or not pair[1]]
    heads = [
        f"{row.label}, paper" if paper else tell_network(row.label) + (", here" if row.paper else "")
        for row, paper in columns
    ]
    lines = [["class", *heads]]
    for name in (*names, "mean"):
        lines.append([name, *(_quote(row, name) if paper else row.describe(name) for row, paper in columns)])
    return lines


def _quote(row: RowResult, name: str) -> str:
    """The paper's figure, where it gives one."""
    return f"{row.paper[name]:.1f}" if name in row.paper else ""


def describe_conditions(result: Mapping[str, Any], seeds: int, settings: Settings) -> str:
    """Under which conditions the figures hold, and over what they are means."""
    turns = "fold" if result["split"].startswith("fold-") else "seed"
    text = (
        f"{result['dataset']}, split {result['split']}, {result['protocol']}, {result['pairs']} pairs a class"
        f" (list {result['pairs_hash']}), {f'{seeds} {turns}s' if seeds > 1 else f'one {turns}'}"
    )
    return text + ("; a quick look, not a result" if settings.quick else "")


def summarise(results: Sequence[Mapping[str, Any]], metric: str, paper: Mapping[str, float]) -> dict[str, Any]:
    """What a table's record has of a row: mean and spread over its seeds, and where each seed's figures come from."""
    figures = [
        {name: scores[metric] for name, scores in [*one["classes"].items(), ("mean", one["mean"])]} for one in results
    ]
    columns = {name: [one[name] for one in figures] for name in figures[0]}
    return {
        "mean": {name: round(fmean(column), 3) for name, column in columns.items()},
        "std": {name: round(stdev(column), 3) if len(column) > 1 else None for name, column in columns.items()},
        "paper": paper,
        "seeds": [
            {"mean": one["mean"]} | {key: result.get(key) for key in KEPT} for one, result in zip(figures, results)
        ],
    }
