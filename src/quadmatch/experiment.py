"""An experiment: everything that a training run is a function of, read from TOML and checked at once."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ValidationError

from quadmatch.options import OptionsError, describe_unknown
from quadmatch.sections import (
    DataSection,
    DecodingSection,
    FeaturesSection,
    HeadSection,
    LossSection,
    Section,
    TrainingSection,
)

if TYPE_CHECKING:
    from quadmatch.matcher import Matcher
    from quadmatch.matching import Loss


class Experiment(Section):
    """Data, network, loss and training of one run."""

    data: DataSection
    features: FeaturesSection = FeaturesSection()
    head: HeadSection
    loss: LossSection = LossSection()
    training: TrainingSection = TrainingSection()
    decoding: DecodingSection = DecodingSection()


class ExperimentError(ValueError):
    """What is wrong with an experiment; names the file and each key."""


def list_experiments() -> list[str]:
    """Names of the experiments that are shipped."""
    folder = resources.files("quadmatch") / "experiments"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def read_experiment(path_or_name: str | Path, changes: Iterable[str] = ()) -> Experiment:
    """From a TOML file, or the name of one that is shipped; `changes` are as in `training.seed=3`."""
    path = Path(path_or_name)
    if path.is_file():
        text = path.read_text(encoding="utf-8")
    else:
        name = path.name.removesuffix(".toml")
        if name not in list_experiments():
            shipped = ", ".join(list_experiments())
            raise ExperimentError(
                f"there is no file {path} and no experiment {name!r}; shipped are {shipped}"
            )
        text = (resources.files("quadmatch") / "experiments" / f"{name}.toml").read_text(encoding="utf-8")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path}: not TOML: {error}") from error
    return check_experiment(content, str(path), changes)


def check_experiment(content: Mapping[str, Any], origin: str, changes: Iterable[str] = ()) -> Experiment:
    """The experiment of some tables; errors name `origin` and the key."""
    tables = json.loads(json.dumps(content, default=str))
    for change in changes:
        apply_change(tables, change)
    try:
        return Experiment.model_validate(tables)
    except ValidationError as error:
        lines = [f"{origin}: {line}" for one in error.errors() for line in _describe(one)]
        raise ExperimentError("\n".join(lines)) from error


def apply_change(tables: dict[str, Any], change: str) -> None:
    """Set one key, as in `head.options.width=256`: the value is TOML, or else text as it stands."""
    key, equals, text = change.partition("=")
    parts = key.strip().split(".")
    if not equals or "" in parts:
        raise ExperimentError(f"--set {change!r}: expected something like training.seed=3")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = tables
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ExperimentError(f"--set {change!r}: {part!r} is a value, not a table")
    table[parts[-1]] = value


def _describe(error: Any) -> list[str]:
    """One problem in words: which key, what is wrong, what was there."""
    key = ".".join(str(part) for part in error["loc"])
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, OptionsError):
        return [f"{key}.{option}: {problem}" for option, problem in cause.problems.items()]
    if error["type"] == "extra_forbidden":
        return [f"{key}: {describe_unknown(str(error['loc'][-1]), _list_keys(error['loc'][:-1]))}"]
    if error["type"] == "missing":
        return [f"{key}: must be given"]
    return [f"{key}: {error['msg'].removeprefix('Value error, ')}, got {error['input']!r}"]


def _list_keys(place: Sequence[str | int]) -> list[str]:
    """Keys of the section at a place in an experiment."""
    section: type[BaseModel] = Experiment
    for part in place:
        section = cast("type[BaseModel]", section.model_fields[str(part)].annotation)
    return list(section.model_fields)


def build_matcher(experiment: Experiment, precision: str | None = None) -> Matcher:
    """Features and head with initial parameters, functions of the experiment; `precision` overrides it."""
    import torch

    from quadmatch.datasets.hashing import hash_text
    from quadmatch.features.extractor import build_extractor
    from quadmatch.matcher import Matcher
    from quadmatch.methods import METHODS

    features = experiment.features
    if features.trunk == "vgg16_bn" and features.weights is None:
        raise ExperimentError("features.weights: must be given for the trunk vgg16_bn")
    extractor = build_extractor(
        features.level,
        weights=features.weights,
        precision=precision or features.precision,
        size=experiment.data.size,
    )
    with torch.random.fork_rng():
        torch.manual_seed(hash_text("parameters", experiment.training.seed) >> 1)
        head = METHODS[experiment.head.method](**experiment.head.options)
    decoding = experiment.decoding.model_dump()
    return Matcher(extractor, head, construction=experiment.data.construction, **decoding)


def build_loss(experiment: Experiment) -> Loss:
    """The experiment's loss."""
    from quadmatch.losses import LOSSES

    return LOSSES[experiment.loss.name](**experiment.loss.options)
