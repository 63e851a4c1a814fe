"""Categories that training never saw: each category of Pascal VOC left out once, within a reduced budget."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from quadmatch.reproduce.beyond import EXPERIMENT
from quadmatch.reproduce.items import Figure, Output, Row, Settings

BUDGET = ("training.steps=100", "training.classes=5", "training.average_decay=0.97", "training.validate_every=0")
PAIRS = 100
WAYS = ("left out", "trained on", "nothing trained")
KEPT = ("pairs_hash", "precision", "date", "hardware", "commit")
"""What the record says of each evaluation."""
CATEGORIES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)


def make(settings: Settings) -> Output:
    """Each category by a network that never saw it, by one that did, and by none, which has the constraint alone."""
    found = {name: try_category(name, settings) for name in settings.follow(settings.rows or CATEGORIES, str)}
    means = {way: fmean(one[way]["accuracy"] for one in found.values()) for way in WAYS}
    lines = [["category", *WAYS]]
    lines += [[name, *(f"{one[way]['accuracy']:.1f}" for way in WAYS)] for name, one in found.items()]
    lines.append(["mean", *(f"{means[way]:.1f}" for way in WAYS)])
    record = {"categories": found, "means": {way: round(mean, 3) for way, mean in means.items()}}
    pairs, steps = settings.count_pairs(PAIRS), BUDGET[0].partition("=")[2]
    caption = f"Pascal VOC, split {settings.split or 'validation'}, intersection, {pairs} pairs a class, one seed. "
    caption += f"Both networks were trained for {steps} steps of 5 classes × 4 objects, a small part of the shipped "
    caption += "model's training"
    caption += "; a quick look, not a result" if settings.quick else ""
    changes = {"changes": [*BUDGET, *settings.changes], "experiment": EXPERIMENT}
    return Output("Categories that training never saw", caption, lines, record | changes, totals=1)


def try_category(name: str, settings: Settings) -> dict[str, dict[str, Any]]:
    """Accuracy on a category's pairs: of a network that never saw it, of one that did, and of none."""
    from quadmatch.evaluation.report import Conditions
    from quadmatch.reproduce.reuse import evaluate_row

    rows = dict(zip(WAYS, (_leave_out(name), Row(EXPERIMENT, changes=BUDGET), Row(model="vgg16"))))
    conditions = Conditions(split=settings.split or "validation", pairs=settings.count_pairs(PAIRS))
    only = {"only": (name,), "without": ()}
    return {
        way: summarise(evaluate_row(row, 0 if row.experiment else None, "pascal-voc", conditions, settings, only))
        for way, row in rows.items()
    }


def _leave_out(name: str) -> Row:
    return Row(EXPERIMENT, changes=(*BUDGET, f"data.options={{without=['{name}']}}"))


def summarise(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """What the record keeps of the evaluation of one category."""
    return {"accuracy": evaluation["mean"]["accuracy"]} | {key: evaluation.get(key) for key in KEPT}


FIGURE = Figure(
    about="accuracy on categories that training never saw, each left out once, within a reduced budget",
    make=make,
    rows=CATEGORIES,
)
