"""How well a network does while it is trained: each rank of a team measures some of the classes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.pairs import draw_test_pairs
from quadmatch.evaluation.evaluate import evaluate
from quadmatch.evaluation.report import Conditions
from quadmatch.features.cache import FeatureStore
from quadmatch.matcher import Matcher
from quadmatch.matching import Loss
from quadmatch.training.team import Team


def evaluate_together(
    matcher: Matcher,
    annotations: Sequence[Annotation],
    conditions: Conditions,
    store: FeatureStore,
    team: Team,
    loss: Loss,
) -> dict[str, float]:
    """The means that `evaluate` gives, on every rank; which pairs a class has does not depend on other classes."""
    drawn = draw_test_pairs(annotations, conditions.protocol, seed=conditions.seed, pairs_per_class=1)
    categories = [pair.category for pair in drawn]
    own = set(categories[team.rank :: team.world_size])
    rows = torch.zeros(len(categories), 3, dtype=torch.float64)
    if own or not categories:  # Where there is no pair at all, `evaluate` says so.
        members = [one for one in annotations if one.category in own or not own]
        found = evaluate(matcher, members, conditions, store=store, loss=loss)
        for name, scores in found.classes.items():
            figures = [scores.accuracy, scores.f1, found.loss or 0.0]
            rows[categories.index(name)] = torch.tensor(figures, dtype=torch.float64)
    team.add([rows])
    accuracy, f1, value = rows.mean(0).tolist()
    return {"accuracy": round(accuracy, 4), "f1": round(f1, 4), "loss": value}
