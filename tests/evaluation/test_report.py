import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quadmatch.evaluation import report


@given(st.integers(0, 3), st.integers(0, 4), st.integers(0, 4), st.integers(0, 1000))
def test_counts_and_ratios_equal_loops(batch, n, m, seed):
    generator = torch.Generator().manual_seed(seed)
    predicted = (torch.rand(batch, n, m, generator=generator) < 0.3).float()
    truth = torch.rand(batch, n, m, generator=generator) < 0.3
    counts = report.count_matches(predicted, truth)
    pairs = []
    for b in range(batch):
        cells = [(bool(predicted[b, i, j]), bool(truth[b, i, j])) for i in range(n) for j in range(m)]
        pairs.append([sum(p and t for p, t in cells), sum(p for p, _ in cells), sum(t for _, t in cells)])
    assert torch.stack(counts, 1).tolist() == pairs
    right, made, true = (sum(column) for column in zip(*pairs)) if pairs else (0, 0, 0)
    assert report.accuracy(counts) == pytest.approx(right / true if true else 0)
    assert report.precision(counts) == pytest.approx(right / made if made else 0)
    p, r = report.precision(counts), report.accuracy(counts)
    assert report.f1(counts) == pytest.approx(2 * p * r / (p + r) if p + r else 0)
    known = [pair[0] / pair[2] for pair in pairs if pair[2]]
    assert report.accuracy_pairs(counts) == pytest.approx(sum(known) / len(known) if known else 0)


def test_summed_and_mean_accuracy_differ_as_they_should():
    counts = report.Counts(torch.tensor([1, 10]), torch.tensor([2, 10]), torch.tensor([2, 10]))
    assert report.accuracy(counts) == pytest.approx(11 / 12)
    assert report.accuracy_pairs(counts) == pytest.approx(0.75)


def list_columns(**changes):
    """The headings of the table of an evaluation whose figures are all 50 but for the changes."""
    same = {"accuracy": 50.0, "accuracy_pairs": 40.0, "precision": 50.0, "recall": 50.0, "f1": 50.0}
    scores = report.Scores(**same | changes, pairs=3, objects=20)
    made = report.Evaluation(scores, scores, {"Car": scores}, report.Conditions(), "abc", [])
    return [str(column.header) for column in made.table().columns]


def test_no_figure_is_printed_twice():
    assert list_columns() == ["class", "accuracy", "by pair", "pairs", "objects"]
    differing = list_columns(precision=30.0, f1=37.5)
    assert differing == ["class", "precision", "recall", "F1", "by pair", "pairs", "objects"]


def test_json_says_under_which_conditions_once():
    scores = report.score(report.Counts(*(torch.tensor([2]) for _ in range(3))), 20)
    conditions = report.Conditions(split="validation", outliers=3)
    content = report.Evaluation(scores, scores, {}, conditions, "abc", [], {"model": "vgg16"}).to_json()
    assert content["split"] == "validation"
    assert content["outliers"] == 3
    assert content["mean"]["recall"] == content["mean"]["accuracy"] == 100.0
    assert "conditions" not in content
    assert {"protocol", "pairs", "seed", "constraint", "partial", "pairs_hash", "model"} <= content.keys()
