"""One row of a table: its runs trained or reused, evaluated or reused, seed by seed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quadmatch.trials import Conditions, choose_data, try_model

QUICK_STEPS, QUICK_PAIRS = 10, 100
"""A quick look trains a tenth of the steps and tests so many pairs of a class."""


@dataclass(frozen=True)
class Settings:
    """What a user chooses for a whole table."""

    out: Path
    seeds: int
    root: Path | None = None
    split: str | None = None
    """Instead of the table's."""
    quick: bool = False
    changes: tuple[str, ...] = ()
    """Of every experiment, as in `features.precision=float32`."""
    say: Callable[[str], None] = print


def reproduce_row(
    table: Mapping[str, Any], row: Mapping[str, Any], settings: Settings
) -> list[dict[str, Any]]:
    """Results of a row, one a seed; a model without training has one."""
    pairs = min(QUICK_PAIRS, table["pairs"]) if settings.quick else table["pairs"]
    conditions = Conditions(
        split=settings.split or table["split"],
        protocol=table["protocol"],
        pairs=pairs,
        constraint=row.get("constraint", True),
        partial=row.get("partial", False),
    )
    if "model" in row:
        return [_evaluate(row["model"], table, conditions, settings, None)]
    results = []
    for seed in range(settings.seeds):
        run = train(row, seed, conditions.split, settings)
        results.append(_evaluate(run, table, conditions, settings, seed))
    return results


def train(row: Mapping[str, Any], seed: int, split: str, settings: Settings) -> Path:
    """The folder of the finished run of a row and seed; what is there already is reused."""
    from quadmatch.checkpoints import list_checkpoints, read_state
    from quadmatch.experiment import read_experiment
    from quadmatch.runs import MACHINE, RECORD, read_run
    from quadmatch.training import fit, resume

    changes = [*row.get("changes", ()), *settings.changes, f"training.seed={seed}"]
    if settings.quick:
        steps = read_experiment(row["experiment"], changes).training.steps
        changes.append(f"training.steps={max(1, steps // QUICK_STEPS)}")
    if settings.root is not None:
        changes.append(f"data.root={json.dumps(str(settings.root))}")
    experiment = read_experiment(row["experiment"], changes)
    if split == "validation" and experiment.data.split == "trainval":
        raise ValueError(f"{row['experiment']} is trained on trainval: validation would be no test of it")
    folder = settings.out / "runs" / name_run(row, seed, settings)
    if not (folder / RECORD).is_file():
        settings.say(f"training {folder.name}")
        fit(experiment, folder, say=settings.say)
        return folder
    if _describe(read_run(folder).experiment, MACHINE) != _describe(experiment, MACHINE):
        raise ValueError(f"{folder} holds a run of another experiment: remove it, or choose another folder")
    if not (list_checkpoints(folder) and read_state(folder)["finished"]):
        settings.say(f"going on with {folder.name}")
        resume(folder, say=settings.say)
    return folder


def name_run(row: Mapping[str, Any], seed: int, settings: Settings) -> str:
    """A folder's name that tells runs of one experiment with different changes apart."""
    from quadmatch.runs import MACHINE

    words = [Path(row["experiment"]).stem]
    for change in (*row.get("changes", ()), *settings.changes):
        key, _, value = change.partition("=")
        if key.strip() not in MACHINE:
            words.append(re.sub(r"[^\w.=-]", "", f"{key.rpartition('.')[2]}={value}"))
    words += ["quick"] if settings.quick else []
    return "-".join([*words, f"seed{seed}"])


def _describe(experiment: Any, machine: tuple[str, ...]) -> dict[str, Any]:
    """An experiment without what depends on the machine."""
    tables: dict[str, Any] = experiment.model_dump(mode="json")
    for place in machine:
        section, _, key = place.partition(".")
        tables[section].pop(key)
    return tables


def _evaluate(
    model: str | Path, table: Mapping[str, Any], conditions: Conditions, settings: Settings, seed: int | None
) -> dict[str, Any]:
    """The evaluation of a model as JSON, made or read."""
    from quadmatch.files import write_json

    # A run keeps its evaluations itself, so that they go when it goes.
    folder = model if isinstance(model, Path) else settings.out / str(model)
    words = [conditions.split, conditions.protocol, f"{conditions.pairs}pairs"]
    words += [] if conditions.constraint else ["unconstrained"]
    words += ["partial"] if conditions.partial else []
    path = folder / "evaluations" / ("-".join(words) + ".json")
    if path.is_file():
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return known
    settings.say(f"evaluating {folder.name}: {path.stem}")
    data = choose_data(model, table["dataset"], settings.root, table.get("options"))
    result = try_model(model, data, conditions).to_json() | {"training_seed": seed}
    write_json(path, result)
    return result
