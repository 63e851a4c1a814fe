"""Labelled objects vote on the names of keypoints, and equal names are matched."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_experiment import tiny_experiment, write_tiny

from quadmatch.evaluation.evaluate import evaluate
from quadmatch.evaluation.references import _elect, evaluate_with_references, name_keypoints
from quadmatch.evaluation.report import Conditions
from quadmatch.experiments.build import build_matcher, load_split, open_store


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = write_tiny(tmp_path_factory.mktemp("tiny"))
    experiment = tiny_experiment(folder)
    matcher = build_matcher(experiment, "float32,contiguous,1").eval()
    objects = load_split(experiment.data, "trainval")
    return matcher, objects, open_store(matcher.features, folder / "store")


def test_a_name_is_given_once_and_only_where_somebody_votes() -> None:
    votes = np.array([[5.0, 4.0, 0.0], [5.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert _elect(votes).tolist() == [1, 0, -1]
    assert _elect(np.zeros((0, 3))).tolist() == []


def test_references_name_keypoints_and_their_matches_follow(tiny) -> None:
    matcher, objects, store = tiny
    own = [one for one in objects if one.category == objects[0].category]
    tested, voters = own[:4], own[4:]
    conditions = Conditions(split="trainval", pairs=None)
    labels = name_keypoints(matcher, tested, voters, range(4), conditions, store=store)
    # Willow's keypoints are named by their numbers, which sort as texts.
    numbers = {name: number for number, name in enumerate(sorted(tested[0].names))}
    right = np.mean([[labels[i][k] == numbers[one.names[k]] for k in range(10)] for i, one in enumerate(tested)])
    assert right > 0.5
    found = evaluate_with_references(matcher, tested, voters, conditions, store=store)
    truth = 0
    for pair in ((i, j) for i in range(4) for j in range(4) if i != j):
        truth += sum(labels[pair[0]][k] == labels[pair[1]][k] for k in range(10))
    assert found.mean.accuracy == pytest.approx(100 * truth / 120, abs=0.01)
    assert found.pairs_hash == evaluate(matcher, tested, conditions, store=store).pairs_hash


def test_an_object_that_is_its_own_reference_is_matched_exactly(tiny) -> None:
    matcher, objects, store = tiny
    own = [one for one in objects if one.category == objects[0].category][:2]
    found = evaluate_with_references(matcher, own, own[:1], Conditions(split="trainval", pairs=None), store=store)
    assert found.mean.pairs == len(found.counts[own[0].category].right)
    labels = name_keypoints(matcher, own, own[:1], [0], Conditions(split="trainval"), store=store)
    assert (labels[0] == np.argsort(np.argsort(own[0].names))).all()


def test_references_vote_as_the_model_is_used(tiny, monkeypatch) -> None:
    matcher, objects, store = tiny
    own = [one for one in objects if one.category == objects[0].category]
    monkeypatch.setattr(matcher, "local_maps", 0.1)
    monkeypatch.setattr("quadmatch.matcher.sharpen", lambda start, *given, **options: start.flip(2))
    flipped = name_keypoints(matcher, own[:1], own[1:2], [0], Conditions(split="trainval"), store=store)
    monkeypatch.undo()
    plain = name_keypoints(matcher, own[:1], own[1:2], [0], Conditions(split="trainval"), store=store)
    assert not np.array_equal(flipped[0], plain[0])
