"""Runs and evaluations that are made once and reused while all that they depend on stays the same."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quadmatch.evaluation.report import Conditions
from quadmatch.evaluation.trial import choose_data, try_model
from quadmatch.reproduce.items import QUICK_STEPS, Row, Settings

if TYPE_CHECKING:
    from quadmatch.experiments.reading import Experiment
    from quadmatch.experiments.schema import DataSection

LONGEST = 160  # Characters of a run's name before its seed: file systems refuse folders of more than 255 bytes.


def train(row: Row, seed: int, split: str, settings: Settings) -> Path:
    """The folder of the finished run of a row and seed; what is there already is reused."""
    from quadmatch.models.checkpoints import list_checkpoints, read_state
    from quadmatch.models.runs import RECORD, read_run
    from quadmatch.training.fit import fit, resume

    experiment = read_row(row, seed, settings)
    if split == "validation" and experiment.data.split == "trainval":
        raise ValueError(f"{row.experiment} is trained on trainval: validation would be no test of it")
    if split.startswith("fold-") and experiment.data.split != split.replace("fold-", "rest-"):
        raise ValueError(f"{row.experiment} is trained on {experiment.data.split}: {split} would be no test of it")
    folder = find_run(row, seed, settings)
    if not (folder / RECORD).is_file():
        for start in row.start:
            train(start, seed, split, settings)
        settings.say(f"training {folder.name}")
        fit(experiment, folder, say=settings.say)
        return folder
    if _describe(read_run(folder).experiment) != _describe(experiment):
        raise ValueError(f"{folder} holds a run of another experiment: remove it, or choose another folder")
    if not (list_checkpoints(folder) and read_state(folder)["finished"]):
        settings.say(f"going on with {folder.name}")
        resume(folder, say=settings.say)
    return folder


def read_row(row: Row, seed: int, settings: Settings) -> Experiment:
    """The experiment of a row, as it is trained with that seed."""
    from quadmatch.experiments.reading import read_experiment

    if row.experiment is None:
        raise ValueError(f"model {row.model!r} is not trained: only a row with an experiment is")
    changes = [*row.changes, *settings.changes, f"training.seed={seed}"]
    if settings.quick:
        steps = read_experiment(row.experiment, changes).training.steps
        changes.append(f"training.steps={min(steps, max(1, steps // QUICK_STEPS))}")
    if row.start:
        starts = [find_run(start, seed, settings).as_posix() for start in row.start]
        changes += [f"training.seed={seed + row.count_starts()}", f"training.start={json.dumps(starts)}"]
    if settings.root is not None:
        changes.append(f"data.root={json.dumps(str(settings.root))}")
    return read_experiment(row.experiment, changes)


def find_run(row: Row, seed: int, settings: Settings) -> Path:
    """Where the run of a row and seed lies, or would lie."""
    return settings.out / "runs" / name_run(row, seed, settings)


def evaluate_row(
    row: Row,
    seed: int | None,
    dataset: str,
    conditions: Conditions,
    settings: Settings,
    options: Mapping[str, Any] | None = None,
    *,
    by_pair: bool = False,
) -> dict[str, Any]:
    """The evaluation of a row's model, used as the row says, which is trained with that seed unless it is there."""
    used = replace(conditions, constraint=row.constraint, partial=row.partial, local_maps=row.local_maps)
    if row.decoding is not None:
        used = replace(used, decoding=row.decoding)
    model = row.model or train(row, seed or 0, used.split, settings)
    found = evaluate_once(model, dataset, used, settings, options, by_pair=by_pair, references=row.references)
    return found | {"training_seed": seed}


def name_run(row: Row, seed: int, settings: Settings) -> str:
    """A folder's name that tells runs with different changes apart; a long one is cut and ends with a hash."""
    words = [Path(row.experiment or "").stem]
    for change in list_lasting((*row.changes, *settings.changes)):
        key, _, value = change.partition("=")
        words.append(re.sub(r"[^\w.=-]", "", f"{key.rpartition('.')[2]}={value}"))
    words += ["quick"] if settings.quick else []
    words += [f"after-{name_run(start, seed, settings)}" for start in row.start]
    name = "-".join(words)
    if len(name) > LONGEST:
        name = f"{name[: LONGEST - 13]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return f"{name}-seed{seed}"


def list_lasting(changes: Sequence[str]) -> list[str]:
    """The changes of an experiment that make it another one: all but those of the machine that it runs on."""
    from quadmatch.models.runs import MACHINE

    return [change for change in changes if change.partition("=")[0].strip() not in MACHINE]


def _describe(experiment: Experiment) -> dict[str, Any]:
    """An experiment without what depends on the machine."""
    from quadmatch.models.runs import MACHINE

    tables: dict[str, Any] = experiment.model_dump(mode="json")
    for place in MACHINE:
        section, _, key = place.partition(".")
        tables[section].pop(key)
    return tables


def evaluate_once(
    model: str | Path,
    dataset: str,
    conditions: Conditions,
    settings: Settings,
    options: Mapping[str, Any] | None = None,
    *,
    by_pair: bool = False,
    references: str | None = None,
) -> dict[str, Any]:
    """The evaluation of a model on a data set as JSON, made or read; `by_pair`: one that has every pair's counts."""
    from quadmatch.files import write_json

    data = choose_data(model, dataset, settings.root, options)
    # A run keeps its evaluations itself, so that they go when it goes.
    folder = model if isinstance(model, Path) else settings.out / model
    name = f"{dataset}-{conditions.split}-{conditions.protocol}-{name_evaluation(model, data, conditions)}"
    path = folder / "evaluations" / f"{name}{f'-by-{references}' if references else ''}.json"
    if path.is_file():
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not by_pair or "by_pair" in known:  # Those of earlier versions have none.
            return known
    settings.say(f"evaluating {folder.name}: {path.stem}")
    found = try_model(model, data, conditions, references=references)
    result = found.to_json() | {"by_pair": found.list_pairs()}
    write_json(path, result, make_folder=True)
    return result


def name_evaluation(model: str | Path, data: DataSection, conditions: Conditions) -> str:
    """A hash of all that an evaluation depends on; where files lie and how fast the machine is do not count."""
    from quadmatch.machine import find_version

    content = {
        "model": hash_model(model),
        "data": data.model_dump(mode="json", exclude={"root"}),
        "objects": _hash_objects(data.model_dump_json(), conditions.split),
        "conditions": asdict(conditions),
        "version": find_version(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def hash_model(model: str | Path) -> str:
    """A hash of what a model is, not of its name: of its experiment and its parameters."""
    from quadmatch.features.weight_files import hash_state
    from quadmatch.models.checkpoints import load_parameters
    from quadmatch.models.load import DEFAULT, TRAINED, UNTRAINED, find_model, list_models
    from quadmatch.models.runs import read_run

    if str(model) == DEFAULT and TRAINED in list_models():
        return f"{DEFAULT} {hash_model(TRAINED)}"
    if str(model) in (UNTRAINED, DEFAULT):
        return UNTRAINED  # Its weights have one known checksum, whatever source they come from.
    place = find_model(model)
    if place.is_dir():
        description = json.dumps(_describe(read_run(place).experiment), sort_keys=True)
        return hashlib.sha256(f"{description} {hash_state(load_parameters(place))}".encode()).hexdigest()
    digest = hashlib.sha256()
    for ending in (".json", ".safetensors"):
        digest.update(hashlib.sha256(place.with_suffix(ending).read_bytes()).digest())
    return digest.hexdigest()


@lru_cache(maxsize=8)
def _hash_objects(data: str, split: str) -> str:
    """A hash of the objects of a split: names, boxes, keypoints, and the size of each picture's file."""
    from quadmatch.experiments.build import load_split
    from quadmatch.experiments.schema import DataSection

    digest = hashlib.sha256()
    for one in load_split(DataSection.model_validate_json(data), split):
        size = one.image.stat().st_size if isinstance(one.image, Path) else None
        digest.update(repr((one.name, one.category, one.box, one.names, one.mirrored, size)).encode())
        digest.update(one.points.tobytes())
    return digest.hexdigest()
