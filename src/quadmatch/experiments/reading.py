"""An experiment: everything that a training run is a function of, read from TOML and checked at once."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from quadmatch.datasets.texts import read_text
from quadmatch.experiments.options import OptionsError, describe_unknown
from quadmatch.experiments.schema import (
    ConstraintSection,
    DataSection,
    DecodingSection,
    FeaturesSection,
    HeadSection,
    LossSection,
    Section,
)
from quadmatch.experiments.shipped import locate_experiment
from quadmatch.experiments.training_schema import TrainingSection


class Experiment(Section):
    """Data, network, loss and training of one run."""

    data: DataSection
    features: FeaturesSection = FeaturesSection()
    head: HeadSection
    constraint: ConstraintSection | None = None
    loss: LossSection = LossSection()
    training: TrainingSection = TrainingSection()
    decoding: DecodingSection = DecodingSection()


class ExperimentError(ValueError):
    """What is wrong with an experiment; names the file and each key."""


def read_experiment(path_or_name: str | Path, changes: Iterable[str] = ()) -> Experiment:
    """From a TOML file, or the name of one that is shipped; `changes` are as in `training.seed=3`.

    Its key `base` names another one, a file beside it or one that is shipped, whose tables hold where this
    one says nothing.
    """
    path = Path(path_or_name)
    own = _read_tables(path, path, "")
    if "base" not in own:
        return check_experiment(own, str(path), changes)
    name = own.pop("base")
    if not isinstance(name, str):
        raise ExperimentError(f"{path}: base: must be the name of an experiment or of a file, got {name!r}")
    base = _read_tables(path.parent / name, Path(name), f"{path}: base: ")
    if "base" in base:
        raise ExperimentError(
            f"{path}: base: {name!r} has a base itself, {base['base']!r}, and one level is all there is: "
            f"name {base['base']!r} here, and say what {name!r} changes"
        )

    def find_origin(key: str) -> str:
        return name if _has(base, key) and not _has(own, key) else str(path)

    return _check(merge_tables(base, own), find_origin, changes)


def _read_tables(path: Path, shipped: Path, start: str) -> dict[str, Any]:
    """The tables of a file, or else of the shipped experiment of that name; errors begin with `start`."""
    try:
        return _parse(read_text(locate_experiment(path, shipped)), str(path))
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path}: not TOML: {error}") from error
    except ExperimentError:
        raise
    except (FileNotFoundError, ValueError) as error:
        raise ExperimentError(f"{start}{error}") from None


def _parse(text: str, where: str) -> dict[str, Any]:
    """Tables of TOML; what Python cannot hold is told with `where` it stands."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ExperimentError(f"{where}: its lists or tables are nested too deeply") from None
    except ValueError as error:  # A number of thousands of digits.
        raise ExperimentError(f"{where}: {error}") from None


def merge_tables(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The base with what `own` says put over it, key by key; options of another part are not taken over."""
    merged = dict(base)
    if any(key in base and key in own and base[key] != own[key] for key in ("name", "method")):
        merged.pop("options", None)
    for key, value in own.items():
        tables = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge_tables(merged[key], value) if tables else value
    return merged


def _has(tables: Any, key: str) -> bool:
    """Whether there is such a key, as in `training.seed`."""
    for part in key.split("."):
        if not isinstance(tables, Mapping) or part not in tables:
            return False
        tables = tables[part]
    return True


def check_experiment(content: Mapping[str, Any], origin: str, changes: Iterable[str] = ()) -> Experiment:
    """The experiment of some tables; errors name `origin` and the key."""
    return _check(content, lambda key: origin, changes)


def _check(content: Mapping[str, Any], find_origin: Callable[[str], str], changes: Iterable[str]) -> Experiment:
    tables = json.loads(json.dumps(content, default=str))
    for change in changes:
        apply_change(tables, change)
    if tables.get("constraint") == "none":  # as in --set constraint=none
        del tables["constraint"]
    try:
        return Experiment.model_validate(tables)
    except ValidationError as error:
        problems = [line for one in error.errors() for line in _describe(one)]
        lines = [f"{find_origin(key)}: {key}: {problem}" for key, problem in problems]
        raise ExperimentError("\n".join(lines)) from error


def apply_change(tables: dict[str, Any], change: str) -> None:
    """Set one key, as in `head.options.width=256`: the value is TOML, or else text as it stands."""
    key, equals, text = change.partition("=")
    parts, where = key.strip().split("."), f"--set {change!r:.80}"
    if not equals or "" in parts:
        raise ExperimentError(f"{where}: expected something like training.seed=3")
    try:
        value = _parse(f"value = {text}", where)["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = tables
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ExperimentError(f"{where}: {part!r} is a value, not a table")
    table[parts[-1]] = value


def _describe(error: Any) -> list[tuple[str, str]]:
    """Which keys are wrong, and what is wrong with each in words."""
    key = ".".join(str(part) for part in error["loc"])
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, OptionsError):
        return [(f"{key}.{option}", problem) for option, problem in cause.problems.items()]
    if error["type"] == "extra_forbidden":
        return [(key, describe_unknown(str(error["loc"][-1]), _list_keys(error["loc"][:-1])))]
    if error["type"] == "missing":
        return [(key, "must be given")]
    return [(key, f"{error['msg'].removeprefix('Value error, ')}, got {error['input']!r:.80}")]


def _list_keys(place: Sequence[str | int]) -> list[str]:
    """Keys of the section at a place in an experiment."""
    section: type[BaseModel] = Experiment
    for part in place:
        section = cast("type[BaseModel]", section.model_fields[str(part)].annotation)
    return list(section.model_fields)
