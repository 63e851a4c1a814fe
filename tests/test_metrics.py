import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quadmatch import metrics


@given(st.integers(0, 3), st.integers(0, 4), st.integers(0, 4), st.integers(0, 1000))
def test_counts_and_ratios_equal_loops(batch, n, m, seed):
    generator = torch.Generator().manual_seed(seed)
    predicted = (torch.rand(batch, n, m, generator=generator) < 0.3).float()
    truth = torch.rand(batch, n, m, generator=generator) < 0.3
    counts = metrics.count_matches(predicted, truth)
    pairs = []
    for b in range(batch):
        cells = [(bool(predicted[b, i, j]), bool(truth[b, i, j])) for i in range(n) for j in range(m)]
        pairs.append([sum(p and t for p, t in cells), sum(p for p, _ in cells), sum(t for _, t in cells)])
    assert torch.stack(counts, 1).tolist() == pairs
    right, made, true = (sum(column) for column in zip(*pairs)) if pairs else (0, 0, 0)
    assert metrics.accuracy(counts) == pytest.approx(right / true if true else 0)
    assert metrics.recall(counts) == metrics.accuracy(counts)
    assert metrics.precision(counts) == pytest.approx(right / made if made else 0)
    p, r = metrics.precision(counts), metrics.recall(counts)
    assert metrics.f1(counts) == pytest.approx(2 * p * r / (p + r) if p + r else 0)
    known = [pair[0] / pair[2] for pair in pairs if pair[2]]
    assert metrics.accuracy_pairs(counts) == pytest.approx(sum(known) / len(known) if known else 0)


def test_summed_and_mean_accuracy_differ_as_they_should():
    counts = metrics.Counts(torch.tensor([1, 10]), torch.tensor([2, 10]), torch.tensor([2, 10]))
    assert metrics.accuracy(counts) == pytest.approx(11 / 12)
    assert metrics.accuracy_pairs(counts) == pytest.approx(0.75)
