"""The models that ship give the figures of their records: on photographs, and on Pascal VOC where it is at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quadmatch.datasets import DATASETS
from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.photo_pairs import list_photo_pairs
from quadmatch.demo.photographs import match_both_ways
from quadmatch.evaluation.evaluate import evaluate
from quadmatch.evaluation.report import Conditions
from quadmatch.models.load import load
from quadmatch.own_images.corners import find_corners

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "src" / "quadmatch" / "models"
CLASSES = ("diningtable", "sofa", "sheep")
"""Of few objects. A class's list of pairs depends on the class alone, so each must give the whole record's figure."""


def list_shipped() -> list[str]:
    """Every model of the package that has parameters."""
    return sorted(path.stem for path in MODELS.glob("*.safetensors"))


def read_record(name: str) -> dict[str, Any]:
    """The evaluation on the validation split that a model's card quotes."""
    return json.loads((ROOT / "results" / f"{name}-validation.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", list_shipped())
def test_a_card_has_the_figure_of_its_record(name: str) -> None:
    card = json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))
    assert [one["mean"]["accuracy"] for one in card["figures"]] == [read_record(name)["mean"]["accuracy"]]


RIGHT = {"qcattention-voc": 67, "qcdgm1-voc": 52, "qcdgm2-voc": 45}
"""Right points of the photographs below: whoever ships another model counts anew."""


@pytest.mark.slow
@pytest.mark.parametrize("name", list_shipped())
def test_a_shipped_model_matches_photographs_as_it_did(name: str) -> None:
    pairs = list_photo_pairs(1, strength=2.0)
    matcher = load(name, precision="float32,channels_last,1")
    constrained, _ = match_both_ways(matcher, pairs)
    right = sum(pair.count_right(np.asarray(found.pairs)) for pair, found in zip(pairs, constrained))
    assert right == pytest.approx(RIGHT[name], abs=2)  # A processor may round otherwise.


@pytest.mark.slow
def test_points_that_match_nothing_do_not_lead_the_default_astray() -> None:
    """Ten of them in each picture, anywhere between the others; all points are forced to match."""
    matcher, right, total = load(precision="float32,channels_last,1"), 0, 0
    for number, pair in enumerate(list_photo_pairs(2, strength=2.0)):
        rng = np.random.default_rng(number)
        sides = [
            np.concatenate([own, rng.uniform(own.min(0), own.max(0), (10, 2))])
            for own in (pair.points_a, pair.points_b)
        ]
        found = matcher.match(pair.picture_a, sides[0], pair.picture_b, sides[1]).pairs
        real = np.asarray(found)[np.asarray(found)[:, 0] < len(pair.truth)]
        right, total = right + pair.count_right(real), total + len(pair.truth)
    assert right > 0.85 * total


@pytest.mark.slow
def test_twelve_landmarks_are_found_among_many_detected_corners() -> None:
    """As `match --detect 60` finds them where one picture has points: most corners have no partner."""
    matcher, right, total = load(precision="float32,channels_last,1"), 0, 0
    for pair in list_photo_pairs(1, strength=1.0)[:3]:
        landmarks, true = pair.points_a[:12], pair.points_b[pair.truth[:12]]
        corners = find_corners(pair.picture_b, 60)
        found = matcher.match(pair.picture_a, landmarks, pair.picture_b, corners, partial=True)
        away = np.linalg.norm(corners[found.pairs[:, 1]] - true[found.pairs[:, 0]], axis=1)
        right, total = right + int((away <= 0.1 * max(pair.picture_b.shape)).sum()), total + len(true)
    assert right > 0.6 * total


@pytest.fixture(scope="module")
def objects() -> list[Annotation]:
    """Those of the chosen classes, listed once for all models."""
    return [one for one in DATASETS["pascal-voc"](None, "validation") if one.category in CLASSES]


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("QUADMATCH_MIRROR"), reason="QUADMATCH_MIRROR names no folder of archives")
@pytest.mark.parametrize("name", list_shipped())
def test_a_shipped_model_gives_the_accuracy_of_its_card(name: str, objects: list[Annotation]) -> None:
    record = read_record(name)
    conditions = Conditions(split="validation", pairs=record["pairs"])
    found = evaluate(load(name, precision="float32,channels_last,1"), objects, conditions)
    for category, scores in found.classes.items():
        assert scores.objects == record["classes"][category]["objects"]
        # Number formats differ by machine, and a keypoint here or there with them: in bfloat16 two fewer of
        # the 107 keypoints of the sofas' 21 pairs are right, which is 61.5 instead of 63.4 over a list of a thousand.
        assert scores.accuracy == pytest.approx(record["classes"][category]["accuracy"], abs=2.0), category
