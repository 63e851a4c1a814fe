from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import typer
from scipy.optimize import linear_sum_assignment
from tiny_experiment import write_tiny
from torch import nn
from typer.testing import CliRunner

import quadmatch.evaluation.evaluate as evaluation_module
from quadmatch.bench.evaluation import run as run_benchmark
from quadmatch.commands.evaluate import evaluate as evaluate_command
from quadmatch.commands.evaluate import parse_options
from quadmatch.datasets.annotation import load_crop
from quadmatch.datasets.pairs import draw_test_pairs
from quadmatch.datasets.protocols import add_outliers
from quadmatch.datasets.willow import willow
from quadmatch.evaluation.evaluate import evaluate
from quadmatch.evaluation.report import Conditions, Scores, average
from quadmatch.features.cache import FeatureStore
from quadmatch.features.levels import build_extractor
from quadmatch.layers.quadratic_constraint import QuadraticStep
from quadmatch.matcher import Matcher
from quadmatch.methods.dot_product import DotProduct


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def extractor(tiny):
    return build_extractor("frozen", weights=tiny / "vgg16.safetensors", precision="float32,contiguous,1", size=32)


@pytest.fixture(scope="module")
def objects(tiny):
    """Two classes, one of four objects and one of eleven, with keypoints missing here and there."""
    chosen = [one for one in willow(tiny / "data", "trainval") if one.category in ("Car", "Duck")]
    return [
        drop_points(one, number) for number, one in enumerate(chosen) if one.category == "Duck" or one.name < "Car/004"
    ]


def drop_points(annotation, number):
    kept = [place for place in range(10) if (place + number) % 5]
    names = tuple(annotation.names[place] for place in kept)
    return replace(annotation, names=names, points=annotation.points[kept])


@pytest.fixture
def store(tmp_path, extractor):
    return FeatureStore.open(tmp_path / "store", extractor.key)


class Plain(nn.Module):
    """Scores as they are, so that the best match is that of the scores."""

    def forward(self, pair, source, target):
        scores = DotProduct()(pair, source, target)
        return replace(scores, assignment=scores.unary / 2 / max(scores.unary.shape))


def expect(extractor, annotations, protocol, pairs):
    """The same figures by loops: features anew for every pair, scipy on the dot products."""
    counts: dict[str, list[tuple[int, int, int]]] = {}
    for pair in draw_test_pairs(annotations, protocol, pairs_per_class=pairs):
        sides = [annotations[pair.source], annotations[pair.target]]
        common = set(sides[0].names) & set(sides[1].names)
        kept = [list(side.names) for side in sides]
        if protocol != "unfiltered":
            kept[0] = [name for name in kept[0] if name in common]
        if protocol == "intersection":
            kept[1] = [name for name in kept[1] if name in common]
        rows = []
        for side, names in zip(sides, kept):
            pixels, points = load_crop(side, 32)
            found = extractor.compute(torch.tensor(pixels)[None], [torch.from_numpy(points)])
            places = [side.names.index(name) for name in names]
            rows.append(torch.cat([found.local, found.edge], -1)[0, places].double().numpy())
        left, right = linear_sum_assignment(rows[0] @ rows[1].T, maximize=True)
        right_ones = sum(kept[0][i] == kept[1][j] for i, j in zip(left, right))
        counts.setdefault(pair.category, []).append((right_ones, len(left), len(common)))
    return counts


@pytest.mark.parametrize("protocol", ["intersection", "inclusion", "unfiltered"])
def test_figures_are_those_of_a_plain_loop(extractor, objects, store, protocol) -> None:
    matcher = Matcher(extractor, Plain())
    result = evaluate(matcher, objects, Conditions(protocol=protocol, pairs=6), store=store)
    expected = expect(extractor, objects, protocol, 6)
    assert result.classes.keys() == expected.keys() == {"Car", "Duck"}
    for name, counts in expected.items():
        right, predicted, true = np.array(counts).sum(0)
        scores = result.classes[name]
        assert scores.accuracy == scores.recall == pytest.approx(100 * right / true, abs=1e-4)
        assert scores.precision == pytest.approx(100 * right / predicted, abs=1e-4)
        assert scores.f1 == pytest.approx(200 * right / (predicted + true), abs=1e-4)
        assert scores.accuracy_pairs == pytest.approx(np.mean([100 * r / t for r, _, t in counts]), abs=1e-4)
        assert scores.pairs == 6
    accuracies = [one.accuracy for one in result.classes.values()]
    assert result.mean.accuracy == pytest.approx(np.mean(accuracies), abs=1e-4)
    assert result.classes["Car"].objects == 4
    assert result.mean_common == average([result.classes["Duck"]])


def test_neither_order_nor_chunks_nor_mode_change_a_result(extractor, objects, store, monkeypatch) -> None:
    matcher = Matcher(extractor, DotProduct(), constraint=QuadraticStep(), decoding={}).train()
    first = evaluate(matcher, objects, Conditions(pairs=7), store=store).to_json()
    assert matcher.training
    monkeypatch.setattr(evaluation_module, "PAIRS", 2)
    monkeypatch.setattr(evaluation_module, "OBJECTS", 3)
    assert evaluate(matcher.eval(), objects[::-1], Conditions(pairs=7), store=store).to_json() == first
    assert evaluate(matcher, objects, Conditions(pairs=7, seed=1), store=store).pairs_hash != first["pairs_hash"]


def test_every_object_goes_through_the_network_once(extractor, objects, store, monkeypatch) -> None:
    seen = []
    extract = extractor.extract
    monkeypatch.setattr(extractor, "extract", lambda i, p: seen.append(len(i)) or extract(i, p))
    matcher = Matcher(extractor, DotProduct(), decoding={})
    evaluate(matcher, objects, Conditions(pairs=50), store=store)
    assert sum(seen) == len(objects)
    evaluate(matcher, objects, Conditions(pairs=20, seed=3, protocol="unfiltered"), store=store)
    assert sum(seen) == len(objects)


def test_constraint_off_is_the_head_before_its_constraint(extractor, objects, store) -> None:
    plain = Matcher(extractor, DotProduct())
    whole = Matcher(extractor, DotProduct(), constraint=QuadraticStep(weight=0.6), decoding={"weight": 0.6})
    expected = evaluate(plain, objects, Conditions(pairs=20), store=store)
    free = evaluate(whole, objects, Conditions(pairs=20, constraint=False), store=store)
    assert free.classes == expected.classes
    assert evaluate(whole, objects, Conditions(pairs=20), store=store).classes != expected.classes


def test_partial_predicts_less_and_outliers_are_no_true_matches(extractor, objects, store) -> None:
    matcher = Matcher(extractor, DotProduct(temperature=0.5), threshold=0.25)
    noisy = add_outliers(objects, 3, "uniform")
    whole = evaluate(matcher, noisy, Conditions(pairs=20), store=store)
    part = evaluate(matcher, noisy, Conditions(pairs=20, partial=True), store=store)
    clean = evaluate(matcher, objects, Conditions(pairs=20), store=store)
    assert whole.pairs_hash == clean.pairs_hash
    assert whole.mean.precision < whole.mean.recall
    assert clean.mean.precision == clean.mean.recall
    assert part.mean.recall < whole.mean.recall


def test_features_of_many_outliers_serve_fewer(extractor, objects, store, monkeypatch) -> None:
    matcher = Matcher(extractor, DotProduct(), decoding={})
    few, many = (add_outliers(objects, count, "uniform") for count in (2, 5))
    expected = evaluate(matcher, few, Conditions(pairs=20), store=store)
    evaluate(matcher, many, Conditions(pairs=20), store=store)
    monkeypatch.setattr(extractor, "extract", None)  # nothing may go through the network again
    assert evaluate(matcher, few, Conditions(pairs=20), read=many, store=store).classes == expected.classes


def test_what_cannot_be_evaluated_is_said(extractor, objects, store) -> None:
    with pytest.raises(ValueError, match="admits no pair"):
        evaluate(Matcher(extractor, DotProduct()), objects[:1], Conditions(), store=store)
    with pytest.raises(TypeError, match="FeatureExtractor"):
        evaluate(Matcher(nn.Identity(), DotProduct()), objects, Conditions(), store=store)
    lonely = [one for one in objects if one.category == "Duck"] + [objects[0]]
    assert evaluate(Matcher(extractor, DotProduct()), lonely, Conditions(pairs=2), store=store).without_pairs == ["Car"]


def test_average_sums_what_is_counted() -> None:
    first, second = Scores(10.0, 20.0, 30.0, 40.0, 50.0, 3, 4), Scores(30.0, 30.0, 30.0, 30.0, 30.0, 5, 6)
    assert average([first, second]) == Scores(20.0, 25.0, 30.0, 35.0, 40.0, 8, 10)


def test_command_prints_a_table_and_writes_json(tiny, extractor, tmp_path, monkeypatch) -> None:
    small = Matcher(extractor, DotProduct(), decoding={}).eval()
    monkeypatch.setattr("quadmatch.models.load.build_untrained", lambda precision: small)
    app = typer.Typer()
    app.command()(evaluate_command)
    words = ["vgg16", "--dataset", "willow", "--root", tiny / "data", "--split", "trainval", "--pairs", 3]
    words += ["--no-constraint", "--precision", "float32", "--cache", tmp_path, "--json", tmp_path / "out.json"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert "Winebottle" in done.output
    assert "accuracy" in done.output
    assert "recall" not in done.output  # the same number under another name
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["pairs_hash"] in done.output
    assert result["classes"].keys() == {"Car", "Duck", "Face", "Motorbike", "Winebottle"}
    assert {"accuracy", "accuracy_pairs", "precision", "recall", "f1"} <= result["mean"].keys()
    assert (result["protocol"], result["seed"], result["split"]) == ("intersection", 0, "trainval")
    assert (result["model"], result["dataset"], result["constraint"]) == ("vgg16", "willow", False)
    assert {"date", "hardware", "commit", "command"} <= result.keys()
    assert str(tiny) not in json.dumps(result)
    printed = json.loads(CliRunner().invoke(app, [*map(str, words[:-1]), "-", "--quiet"]).stdout)
    assert printed["classes"] == result["classes"]


def test_options_of_a_data_set_are_toml_or_text() -> None:
    assert parse_options(["crop=true", "outside=drop", "margin=0.2"]) == {
        "crop": True,
        "outside": "drop",
        "margin": 0.2,
    }
    with pytest.raises(ValueError, match="outside=drop"):
        parse_options(["crop"])


def test_the_benchmark_compares_the_same_pairs() -> None:
    (row,) = run_benchmark(pairs=6, views=3, timed=1)
    assert row["size"] == "6 pairs of 3 objects"
    assert row["ratio"] == row["peer"] / row["ours"]
    assert row["met"] == (row["ratio"] >= 20)
    assert row["ratio"] > 1  # three extractions instead of twelve


def test_counts_of_pairs_and_a_loss_are_there_when_asked_for(extractor, objects, store) -> None:
    matcher = Matcher(extractor, DotProduct())
    conditions = Conditions(pairs=7, constraint=False)
    found = evaluate(matcher, objects, conditions, store=store)
    assert found.loss is None
    assert not {"loss", "counts"} & found.to_json().keys()
    for name, pairs in found.list_pairs().items():
        assert len(pairs["right"]) == len(pairs["true"]) == 7
        assert 100 * sum(pairs["right"]) / sum(pairs["true"]) == pytest.approx(found.classes[name].accuracy, abs=1e-3)
    seen = []

    def count(matching, pairs):
        seen.append(len(pairs.truth))
        return torch.tensor(float(len(seen)))

    assert evaluate(matcher, objects, conditions, store=store, loss=count).loss == pytest.approx(1.5)
    assert seen == [7, 7]
