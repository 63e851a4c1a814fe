"""A record of which some rows were made anew: the others stay, if they were measured alike."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]


def read_record(path: Path) -> Record | None:
    """A table's record of before, if there is one."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def keep_rows(made: Record, known: Record, order: Sequence[str]) -> Record:
    """What was made, and of what was known the rows that were not, in that order.

    A comparison of before stays if both of its rows do.
    """
    rows = {label: made["rows"].get(label) or known["rows"].get(label) for label in order}
    kept = [label for label in order if label not in made["rows"]]
    still = [f"{one} against {other}" for one in kept for other in kept]
    old = {name: one for name, one in known.get("compared", {}).items() if name in still}
    return {**made, "rows": {label: row for label, row in rows.items() if row}, "compared": {**old, **made["compared"]}}


def are_alike(made: Record, known: Record) -> bool:
    """Whether rows of both can stand in one table: the same pairs, as many seeds, experiments changed alike."""
    ours, theirs = _list_pairs(made), _list_pairs(known)
    seeds = _count_seeds(made) | _count_seeds(known)
    # Records of before said nothing of either: all of them are accuracies, of experiments as they are.
    alike = made["metric"] == known.get("metric", "accuracy") and made["changes"] == known.get("changes", [])
    return alike and len(seeds) < 2 and (ours <= theirs or theirs <= ours)


def _list_pairs(record: Record) -> set[str]:
    """The lists of pairs that rows were measured on: one, or one for each fold."""
    return {seed["pairs_hash"] for row in record["rows"].values() for seed in row["seeds"]}


def _count_seeds(record: Record) -> set[int]:
    """How many seeds the rows have that are trained."""
    found = (row["seeds"] for row in record["rows"].values())
    return {len(seeds) for seeds in found if seeds[0]["training_seed"] is not None}
