from __future__ import annotations

from itertools import combinations, permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from quadmatch.solvers.linear.hungarian import hungarian


def draw(seed: int, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1


def solve_with_scipy(scores: Tensor) -> float:
    rows, columns = linear_sum_assignment(scores.numpy(), maximize=True)
    return float(scores[rows, columns].sum())


def list_partial_values(scores: Tensor, threshold: float) -> list[float]:
    """What each partial one-to-one assignment is worth above the threshold."""
    rows, columns = scores.shape
    return [
        sum(float(scores[i, j]) - threshold for i, j in zip(chosen, order, strict=True))
        for size in range(min(rows, columns) + 1)
        for chosen in combinations(range(rows), size)
        for order in permutations(range(columns), size)
    ]


@given(st.integers(0, 999), st.integers(1, 25), st.integers(1, 25), st.sampled_from(["real", "ties", "structured"]))
def test_optimum_is_scipys(seed: int, rows: int, columns: int, kind: str) -> None:
    scores = draw(seed, 3, rows, columns)
    if kind == "ties":
        scores = (2 * scores).round()
    if kind == "structured":
        scores = 0.1 * scores + draw(seed + 1, 3, rows, 1) * draw(seed + 2, 3, 1, columns)
    chosen = hungarian(scores)
    assert ((chosen == 0) | (chosen == 1)).all()
    assert (chosen.sum(1) <= 1).all()
    assert (chosen.sum(2) <= 1).all()
    assert (chosen.sum((1, 2)) == min(rows, columns)).all()
    for pair, choice in zip(scores, chosen, strict=True):
        assert float((pair * choice).sum()) == pytest.approx(solve_with_scipy(pair), abs=1e-9)


@given(st.integers(0, 999), st.integers(1, 4), st.integers(1, 4), st.floats(-1, 1))
def test_threshold_gives_the_best_partial_assignment(seed: int, rows: int, columns: int, threshold: float) -> None:
    scores = draw(seed, 1, rows, columns)
    chosen = hungarian(scores, threshold=threshold)
    worth = float(((scores - threshold) * chosen).sum())
    assert worth == pytest.approx(max(list_partial_values(scores[0], threshold)), abs=1e-9)
    assert (scores[chosen == 1] > threshold).all()


@given(st.integers(0, 999), st.sampled_from([None, 0.2]))
def test_nodes_are_left_out_wherever_they_stand(seed: int, threshold: float | None) -> None:
    rows, columns = draw(seed, 4, 6) > -0.3, draw(seed + 1, 4, 5) > -0.3
    scores = draw(seed + 2, 4, 6, 5)
    mask = rows[:, :, None] & columns[:, None, :]
    chosen = hungarian(scores.where(mask, torch.nan), mask, threshold=threshold)
    for b in range(4):
        if mask[b].any():
            alone = hungarian(scores[b : b + 1, rows[b]][:, :, columns[b]], threshold=threshold)
            assert torch.equal(chosen[b, rows[b]][:, columns[b]], alone[0])
        assert not chosen[b][~mask[b]].any()


@pytest.mark.parametrize("scale", [1e-300, 1e30, 1e307, 1.7e308])
@pytest.mark.parametrize("threshold", [None, 0.0])
def test_any_finite_scale_gives_the_same_match(scale: float, threshold: float | None) -> None:
    scores = draw(1, 5, 6, 6).clamp(-0.99, 0.99)
    assert torch.equal(hungarian(scores * scale, threshold=threshold), hungarian(scores, threshold=threshold))


def test_ties_and_repeats_give_the_same_answer() -> None:
    scores = torch.zeros(2, 4, 4)
    first = hungarian(scores)
    assert torch.equal(first, hungarian(scores))
    assert torch.equal(first[0], first[1])
    assert first.dtype == torch.float32


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_scores_must_be_finite(value: float) -> None:
    scores = torch.zeros(2, 3, 3)
    scores[1, 2, 2] = value
    for threshold in (None, 0.0):
        with pytest.raises(ValueError, match="scores must be finite"):
            hungarian(scores, threshold=threshold)
    with pytest.raises(ValueError, match="threshold must be finite"):
        hungarian(torch.zeros(2, 3, 3), threshold=value)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 3), (2, 3, 0), (2, 0, 0)])
def test_nothing_to_match(shape: tuple[int, int, int]) -> None:
    assert hungarian(torch.zeros(shape)).shape == shape


def test_strided_half_precision_and_gradients_do_not_matter() -> None:
    scores = draw(2, 3, 5, 4)
    expected = hungarian(scores)
    turned = scores.transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
    assert torch.equal(hungarian(turned), expected)
    assert hungarian(scores.bfloat16()).dtype == torch.bfloat16
