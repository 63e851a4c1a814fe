"""A model tried on a data set under stated conditions: the bridge from names to figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadmatch.evaluation.report import Conditions, Evaluation
    from quadmatch.experiments.schema import DataSection
    from quadmatch.features.store_features import Progress

MOST_OUTLIERS = 10
"""Outliers of an object whose features are kept together, so that fewer of them need no new pass of the network."""


def choose_data(
    model: str | Path, dataset: str | None = None, root: Path | None = None, options: Mapping[str, Any] | None = None
) -> DataSection:
    """The data set of that name, as the model saw it if it did; without a name, the one that it saw."""
    from quadmatch.experiments.schema import DataSection
    from quadmatch.models.load import find_experiment

    experiment = find_experiment(model)
    seen: dict[str, Any] = experiment["data"] if experiment else {}
    if dataset is None and not seen:
        raise ValueError(f"model {str(model)!r} was trained on no data set: name the one to evaluate on")
    if dataset not in (None, seen.get("name")):
        seen = {"name": dataset, "size": seen.get("size", 256)}
    changes: dict[str, Any] = {"options": {**seen.get("options", {}), **(options or {})}}
    if root is not None:
        changes["root"] = root
    return DataSection.model_validate({**seen, **changes})


def try_model(
    model: str | Path,
    data: DataSection,
    conditions: Conditions,
    *,
    precision: str | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
    references: str | None = None,
) -> Evaluation:
    """Load the model and evaluate it on a split of the data set; the result says where it came from.

    `references` is a split whose labelled objects vote on the names of keypoints first.
    """
    from quadmatch.datasets.protocols import add_outliers
    from quadmatch.evaluation.evaluate import evaluate
    from quadmatch.evaluation.references import evaluate_with_references
    from quadmatch.experiments.build import load_split, open_store
    from quadmatch.features.extractor import FeatureExtractor
    from quadmatch.machine import describe_origin
    from quadmatch.models.load import load

    annotations = load_split(data, conditions.split)
    read = None
    if conditions.outliers:
        count, kind, seed = conditions.outliers, conditions.outlier_kind, conditions.seed
        # The first outliers of an object are the same ones however many there are.
        read = add_outliers(annotations, max(count, MOST_OUTLIERS), kind, seed=seed, size=data.size)
        annotations = add_outliers(annotations, count, kind, seed=seed, size=data.size)
    matcher = load(model, precision=precision)
    if conditions.decoding is not None:
        matcher.decoding = conditions.decoding
    if conditions.local_maps is not None:
        matcher.local_maps = conditions.local_maps
    assert isinstance(matcher.features, FeatureExtractor)
    began = perf_counter()
    store = open_store(matcher.features, cache)
    if references is None:
        result = evaluate(matcher, annotations, conditions, read=read, store=store, progress=progress)
    else:
        voters = load_split(data, references)
        result = evaluate_with_references(matcher, annotations, voters, conditions, store=store, progress=progress)
    about = {
        "model": Path(model).name,
        "dataset": data.name,
        "options": data.options,
        "precision": str(matcher.features.precision),
        "seconds": round(perf_counter() - began, 1),
    } | ({} if references is None else {"references": references})
    return replace(result, about=about | describe_origin())
