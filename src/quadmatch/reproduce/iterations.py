"""How many steps of the discrete constraint a network needs, trained with the constraint and without."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from quadmatch.drawing.curves import Curve, draw_grid
from quadmatch.evaluation.report import Conditions
from quadmatch.evaluation.trial import choose_data
from quadmatch.reproduce.items import Output, Row, Settings
from quadmatch.reproduce.outliers import take_methods
from quadmatch.reproduce.reuse import name_evaluation, train
from quadmatch.reproduce.willow import TABLE

STEPS = (0, 1, 2, 3, 5, 10, 30)
"""Frank–Wolfe steps at inference; none is the Hungarian match."""
WAYS = ("trained with", "trained without")
METHODS = take_methods(TABLE)
"""Of each method the row that is trained with the constraint, and the one that is not."""


def make_iterations(
    methods: Mapping[str, tuple[Row, Row]], dataset: str, usual: str, pairs: int, settings: Settings
) -> Output:
    """One panel a method: accuracy against the number of steps."""
    conditions = Conditions(split=settings.split or usual, pairs=settings.count_pairs(pairs))
    steps = [(method, way) for method in methods for way in WAYS]
    found = {}
    for method, way in settings.follow(steps, lambda step: f"{step[0]}, {step[1]}"):
        folder = train(methods[method][WAYS.index(way)], 0, conditions.split, settings)
        found[method, way] = count_steps(folder, dataset, conditions, settings)
    panels: dict[str, dict[str, Curve]] = {}
    for (method, way), one in found.items():
        turn = WAYS.index(way)
        curve = Curve(range(len(STEPS)), one["accuracy"], series=turn, dash=turn)
        panels.setdefault(method, {})[way + " the constraint"] = curve
    figure = draw_grid(panels, x_label="Frank–Wolfe steps at inference", y_label="accuracy (%)", columns=len(panels))
    for axes in figure.axes:  # The places are evenly spaced: the first steps are what matters.
        axes.set_xticks(range(len(STEPS)), [str(step) for step in STEPS])
    lines = [["method", *map(str, STEPS), "steps until at rest", "at rest after 30"]]
    for (method, way), one in found.items():
        cells = [*(f"{value:.1f}" for value in one["accuracy"]), f"{one['taken']:.2f}", f"{one['rested']:.1f} %"]
        lines.append([f"{method}, {way}", *cells])
    first = next(iter(found.values()))
    caption = (
        f"{dataset}, {conditions.split}, {conditions.pairs} pairs a class (list {first['pairs_hash']}), one seed: "
        "every network is decoded under the constraint with weight 0.1 and so many steps. A network trained with the "
        "constraint also has it inside."
    )
    record = {"steps": STEPS, "rows": {f"{method}, {way}": one for (method, way), one in found.items()}}
    title = "Accuracy against the steps of the discrete constraint"
    return Output(title, caption + ("; a quick look, not a result" if settings.quick else ""), lines, record, figure)


def count_steps(model: Path, dataset: str, conditions: Conditions, settings: Settings) -> dict[str, Any]:
    """Accuracy after each number of steps and how many were taken, made or read."""
    from quadmatch.files import write_json

    data = choose_data(model, dataset, settings.root)
    path = model / "evaluations" / f"steps-{name_evaluation(model, data, conditions)}.json"
    if path.is_file():
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return known
    settings.say(f"counting steps of {model.name}")
    result = _count_steps(model, data, conditions)
    write_json(path, result, make_folder=True)
    return result


def _count_steps(model: Path, data: Any, conditions: Conditions) -> dict[str, Any]:
    """One pass of the network, decoded with each number of steps; means over the classes."""
    from quadmatch.datasets.pairs import pairs_hash
    from quadmatch.decode import decode
    from quadmatch.evaluation.evaluate import choose_pairs, compare_pairs
    from quadmatch.experiments.build import load_split, open_store
    from quadmatch.features.extractor import FeatureExtractor
    from quadmatch.machine import describe_origin
    from quadmatch.models.load import load

    annotations = load_split(data, conditions.split)
    chosen = choose_pairs(annotations, conditions)
    matcher = load(model)
    assert isinstance(matcher.features, FeatureExtractor)
    classes: dict[str, list[list[float]]] = {}
    for name, batch, matching in compare_pairs(
        matcher, annotations, chosen, conditions.protocol, store=open_store(matcher.features)
    ):
        tried = [decode(matching, batch.pairs.mask, iterations=steps) for steps in STEPS]
        right = [float((one.assignment * batch.pairs.truth).sum()) for one in tried]
        last = tried[-1]
        true, pairs = float(batch.pairs.truth.sum()), float(len(last.iterations))
        counts = [*right, true, pairs, float(last.iterations.sum()), float(last.converged.sum())]
        classes.setdefault(name, []).append(counts)
    sums = [[sum(column) for column in zip(*rows)] for rows in classes.values()]
    accuracy = [round(100 * fmean(row[step] / row[-4] for row in sums), 3) for step in range(len(STEPS))]
    taken, rested = (fmean(row[place] / row[-3] for row in sums) for place in (-2, -1))
    found = {"accuracy": accuracy, "taken": round(taken, 3), "rested": round(100 * rested, 2)}
    return found | {"pairs_hash": pairs_hash(chosen), "model": model.name} | describe_origin()


def make_figure(settings: Settings) -> Output:
    """The chosen ones of the paper's three methods, on Willow."""
    return make_iterations({name: METHODS[name] for name in settings.rows or METHODS}, "willow", "test", 100, settings)
