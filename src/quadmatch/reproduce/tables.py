"""A whole table: rows made or reused, printed and kept with where they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quadmatch.reproduce import TABLES
from quadmatch.reproduce.report import Row, build_row, draw_table, read_published, write_markdown
from quadmatch.reproduce.rows import Settings, reproduce_row

if TYPE_CHECKING:
    from rich.table import Table


def choose_table(name: str, rows: Sequence[str] | None = None) -> dict[str, Any]:
    """A table by name, with only the rows that are named, if any are."""
    if name not in TABLES:
        raise ValueError(f"table must be one of {', '.join(TABLES)}; got {name!r}")
    table = TABLES[name]
    unknown = [row for row in rows or () if row not in table["rows"]]
    if unknown:
        raise ValueError(f"table {name!r} has no row {unknown[0]!r}; it has {', '.join(table['rows'])}")
    return {**table, "rows": {row: table["rows"][row] for row in rows}} if rows else table


def reproduce_table(name: str, table: Mapping[str, Any], settings: Settings) -> Table:
    """Reproduce every row; write NAME.json and NAME.md into the settings' folder; return what to print."""
    from quadmatch.files import write_file, write_json
    from quadmatch.provenance import describe_origin

    title, published = read_published(table["published"])
    rows: list[Row] = []
    results: dict[str, list[dict[str, Any]]] = {}
    for label, row in table["rows"].items():
        results[label] = reproduce_row(table, row, settings)
        rows.append(build_row(label, results[label], table["figure"], published.get(row.get("paper"), {})))
    caption = describe_table(results, settings)
    kept = {
        "title": title,
        "figure": table["figure"],
        "rows": {row.label: _summarise(row, results[row.label]) for row in rows},
        **describe_origin(),
    }
    stem = f"{name}-quick" if settings.quick else name
    write_json(settings.out / f"{stem}.json", kept)
    write_file(settings.out / f"{stem}.md", write_markdown(title, caption, rows).encode())
    return draw_table(title, caption, rows)


def describe_table(results: Mapping[str, Sequence[Mapping[str, Any]]], settings: Settings) -> str:
    """Under which conditions the figures hold."""
    first = next(iter(results.values()))[0]
    seeds = f"{settings.seeds} seeds" if settings.seeds > 1 else "one seed"
    text = f"{first['dataset']}, split {first['split']}, {first['protocol']}, {first['pairs']} pairs a class"
    text += f" (list {first['pairs_hash']}), {seeds}"
    return text + ("; a quick look, not a result" if settings.quick else "")


def _summarise(row: Row, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = row.seeds[0]
    keys = ("training_seed", "pairs_hash", "date", "hardware", "commit", "precision", "seconds")
    return {
        "mean": {name: round(row.average(name), 3) for name in names},
        "std": {name: None if (spread := row.spread(name)) is None else round(spread, 3) for name in names},
        "paper": row.paper,
        "seeds": [
            {"mean": one["mean"]} | {key: result.get(key) for key in keys}
            for one, result in zip(row.seeds, results)
        ],
    }
