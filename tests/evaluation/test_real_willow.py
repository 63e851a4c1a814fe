"""A short run on the real Willow Object Class, where a folder of archives is named."""

from __future__ import annotations

import os
from itertools import groupby

import pytest

from quadmatch.datasets.willow import willow
from quadmatch.evaluation.evaluate import evaluate
from quadmatch.evaluation.report import Conditions
from quadmatch.experiments.build import open_store
from quadmatch.experiments.reading import read_experiment
from quadmatch.models.load import load
from quadmatch.training.fit import fit

MIRROR = os.environ.get("QUADMATCH_MIRROR")
UNTRAINED = 74.6
"""Of the ImageNet network's dot products on the whole test split."""
PICTURES = 8
"""Of each class that are tested, since a processor reads out some four a second."""


@pytest.mark.slow
@pytest.mark.skipif(not MIRROR, reason="QUADMATCH_MIRROR names no folder of archives")
def test_a_few_steps_on_frozen_features_beat_what_is_not_trained(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("QUADMATCH_DATA", str(tmp_path / "data"))
    changes = [f"data.root={MIRROR}", f"features.cache={tmp_path / 'cache'}", "features.level=frozen"]
    changes += ["training.steps=30", "head.options.width=256"]
    fit(read_experiment("qcdgm1_willow", changes), tmp_path / "run", say=lambda line: None, board=False)
    tested = willow(MIRROR, "test")
    tested = [one for _, group in groupby(tested, lambda one: one.category) for one in list(group)[:PICTURES]]
    trained, untrained = load(tmp_path / "run"), load("vgg16")
    store = open_store(trained.features, tmp_path / "cache")
    plain = evaluate(untrained, tested, Conditions(constraint=False, pairs=200), store=store)
    constrained = evaluate(untrained, tested, Conditions(pairs=200), store=store)
    learned = evaluate(trained, tested, Conditions(pairs=200), store=store)
    assert abs(plain.mean.accuracy - UNTRAINED) < 5  # a part of the test split, so only near the figure
    assert constrained.mean.accuracy > plain.mean.accuracy
    assert learned.mean.accuracy > max(UNTRAINED, plain.mean.accuracy) + 10
    assert learned.pairs_hash == plain.pairs_hash
