from __future__ import annotations

import inspect

import ot
import pygmtools
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from quadmatch.solvers.linear.projection import project
from quadmatch.solvers.linear.scaling import FAR, Sides, scale_linear, scale_log
from quadmatch.solvers.linear.sinkhorn import scale_compiled, sinkhorn


def draw(seed: int, *shape: int, kind: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=kind)


@settings(max_examples=8)
@given(st.integers(0, 99), st.integers(1, 9), st.sampled_from([1.0, 0.2]))
def test_square_pairs_agree_with_pot(seed: int, size: int, temperature: float) -> None:
    scores = draw(seed, 2, size, size)
    ones = torch.ones(size, dtype=torch.float64)
    for pair, soft in zip(scores, sinkhorn(scores, temperature=temperature, iterations=400), strict=True):
        expected = ot.sinkhorn(ones, ones, -pair, reg=temperature, numItermax=400, stopThr=1e-13)
        torch.testing.assert_close(soft, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("rows", "columns"), [(6, 6), (4, 7), (7, 4), (1, 5)])
@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_unequal_sizes_agree_with_the_dummy_rows_of_pygmtools(rows: int, columns: int, temperature: float) -> None:
    scores = draw(1, 3, rows, columns)
    ours = sinkhorn(scores, temperature=temperature, iterations=400)
    theirs = pygmtools.sinkhorn(scores.numpy(), dummy_row=True, max_iter=400, tau=temperature, backend="numpy")
    torch.testing.assert_close(ours, torch.from_numpy(theirs), atol=1e-9, rtol=0)
    small, large = (2, 1) if rows <= columns else (1, 2)
    torch.testing.assert_close(ours.sum(small), torch.ones_like(ours.sum(small)))
    assert (ours.sum(large) <= 1 + 1e-9).all()


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (3, 6), (6, 3)])
def test_slack_agrees_with_the_unmatched_scores_of_pygmtools(rows: int, columns: int) -> None:
    scores = draw(2, 3, rows, columns)
    ours = sinkhorn(scores, temperature=0.1, iterations=400, slack=0.6)
    half = [torch.full((3, size), 0.3, dtype=torch.float64).numpy() for size in (rows, columns)]
    theirs = pygmtools.sinkhorn(
        scores.numpy(), unmatch1=half[0], unmatch2=half[1], max_iter=400, tau=0.1, backend="numpy"
    )
    torch.testing.assert_close(ours, torch.from_numpy(theirs), atol=1e-9, rtol=0)


def test_the_same_few_iterations_give_what_pygmtools_gives() -> None:
    scores = draw(3, 8, 20, 20, kind=torch.float32)
    theirs = pygmtools.sinkhorn(scores, backend="pytorch")
    torch.testing.assert_close(sinkhorn(scores, temperature=1.0, iterations=10), theirs, atol=1e-4, rtol=0)


def draw_slacks(seed: int, *shape: int) -> tuple[Tensor, Tensor]:
    """One slack a row and one a column of scores of this shape."""
    batch, rows, columns = shape
    return draw(seed, batch, rows), draw(seed + 1, batch, columns)


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (3, 6), (6, 3)])
def test_slack_of_each_node_agrees_with_pygmtools(rows: int, columns: int) -> None:
    scores, slacks = draw(2, 3, rows, columns), draw_slacks(12, 3, rows, columns)
    ours = sinkhorn(scores, temperature=0.1, iterations=400, slack=slacks)
    half = [slack.numpy() / 2 for slack in slacks]
    theirs = pygmtools.sinkhorn(
        scores.numpy(), unmatch1=half[0], unmatch2=half[1], max_iter=400, tau=0.1, backend="numpy"
    )
    torch.testing.assert_close(ours, torch.from_numpy(theirs), atol=1e-9, rtol=0)


@pytest.mark.parametrize("temperature", [0.05, 0.001], ids=["linear", "logarithmic"])
def test_slack_as_number_of_a_pair_and_of_a_node_is_one_thing(temperature: float) -> None:
    scores = draw(13, 3, 4, 5)
    number = torch.tensor(0.3, dtype=torch.float64)
    same = number, number.expand(3), (number.expand(3, 4), number.expand(3, 5))
    expected = sinkhorn(scores, temperature=temperature, slack=0.3)
    for slack in same:
        assert torch.equal(sinkhorn(scores, temperature=temperature, slack=slack), expected)
    apart = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    together = sinkhorn(scores, temperature=temperature, slack=apart)
    for b in range(3):
        alone = sinkhorn(scores[b : b + 1], temperature=temperature, slack=float(apart[b]))
        torch.testing.assert_close(together[b : b + 1], alone, atol=1e-12, rtol=0)


def test_a_match_must_exceed_the_mean_slack_of_its_nodes() -> None:
    scores = torch.tensor([[[0.5, 0.0], [0.0, 0.5]]])
    rows, columns = torch.tensor([[0.9, 0.9]]), torch.tensor([[0.0, 0.2]])
    soft = sinkhorn(scores, temperature=0.002, slack=(rows, columns))
    torch.testing.assert_close(soft, torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]), atol=1e-3, rtol=0)


@pytest.mark.parametrize("least", [0.0, -400.0], ids=["linear", "logarithmic"])
@pytest.mark.parametrize("iterations", [6, 7])
def test_gradient_reaches_the_slack(least: float, iterations: int) -> None:
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[1, 2:] = mask[1, :, 2:] = False
    scores = draw(7, 2, 3, 4)
    scores[:, 0, 0] = least
    rows, columns = draw_slacks(14, 2, 3, 4)
    pairs = torch.tensor([0.3, 0.6], dtype=torch.float64)
    for tensor in (scores, rows, columns, pairs):
        tensor.requires_grad_()

    def of_nodes(values: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return sinkhorn(values, mask, temperature=0.5, iterations=iterations, slack=(row, column))

    def of_pairs(values: Tensor, pair: Tensor) -> Tensor:
        return sinkhorn(values, mask, temperature=0.5, iterations=iterations, slack=pair)

    assert torch.autograd.gradcheck(of_nodes, (scores, rows, columns))
    assert torch.autograd.gradcheck(of_pairs, (scores, pairs))
    found = torch.autograd.grad(of_pairs(scores, pairs)[0].sum(), pairs)[0]
    assert found[0] < 0 == found[1]


@pytest.mark.parametrize("temperature", [0.05, 0.001])
def test_slack_on_padding_is_never_read(temperature: float) -> None:
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[1, 2:] = mask[1, :, 2:] = False
    scores, (rows, columns) = draw(15, 2, 3, 4), draw_slacks(16, 2, 3, 4)
    given = rows.clone().requires_grad_(), columns.clone().requires_grad_()
    expected = sinkhorn(scores, mask, temperature=temperature, slack=given)
    rows, columns = (one.where(mask.any(axis), torch.nan) for one, axis in ((rows, 2), (columns, 1)))
    free = sinkhorn(scores, mask, temperature=temperature, slack=(rows, columns))
    torch.testing.assert_close(free, expected.detach())
    rows, columns = rows.requires_grad_(), columns.requires_grad_()
    soft = sinkhorn(scores, mask, temperature=temperature, slack=(rows, columns))
    assert torch.equal(soft, expected)
    for gradient, axis in zip(torch.autograd.grad(soft.square().sum(), (rows, columns)), (2, 1), strict=True):
        assert torch.isfinite(gradient).all()
        assert not gradient[~mask.any(axis)].any()
    with pytest.raises(ValueError, match="slack of rows must be finite"):
        sinkhorn(scores, slack=(rows, columns))


def test_slack_of_another_shape_is_refused() -> None:
    for wrong in (torch.zeros(3), torch.zeros(2, 4), (torch.zeros(2, 3), torch.zeros(2, 3))):
        with pytest.raises((ValueError, TypeError), match="slack"):
            sinkhorn(torch.zeros(2, 3, 4), slack=wrong)
    with pytest.raises(ValueError, match=r"\[2, 3\] and \[2, 4\] for rows and columns; got \[3\]"):
        inspect.unwrap(sinkhorn)(torch.zeros(2, 3, 4), slack=torch.zeros(3))


def test_slack_leaves_out_what_is_not_worth_it() -> None:
    scores = torch.tensor([[[0.9, 0.1], [0.2, 0.3]]])
    soft = sinkhorn(scores, temperature=0.01, slack=0.5)
    torch.testing.assert_close(soft, torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]), atol=1e-3, rtol=0)


@pytest.mark.parametrize("temperature", [0.05, 0.005])
@pytest.mark.parametrize("slack", [None, 0.4])
def test_single_precision_loses_nothing_at_low_temperature(temperature: float, slack: float | None) -> None:
    scores = draw(4, 4, 12, 9, kind=torch.float32)
    single = sinkhorn(scores, temperature=temperature, slack=slack)
    double = sinkhorn(scores.double(), temperature=temperature, slack=slack)
    torch.testing.assert_close(single.double(), double, atol=1e-5, rtol=0)


@given(st.integers(0, 99), st.booleans(), st.booleans(), st.integers(1, 7))
def test_all_loops_are_the_same_algorithm(seed: int, padded: bool, slack: bool, iterations: int) -> None:
    rows, columns = torch.ones(3, 5, 1, dtype=torch.bool), torch.ones(3, 1, 6, dtype=torch.bool)
    if padded:
        rows[1, 2:] = False
        columns[2, :, 3:] = False
    mask = rows & columns
    surplus = (rows.sum(1, keepdim=True) - columns.sum(2, keepdim=True)).double()
    between = -4 * draw(seed, 3, 5, 1), -4 * draw(seed + 1, 3, 1, 6)
    sides = Sides(rows, columns, between if slack else None, None if slack else surplus)
    logits = -8 * draw(seed, 3, 5, 6)
    for tolerance in (0.0, 1e-3):
        linear = scale_linear(logits.exp().where(mask, 0), sides, iterations, tolerance)
        logarithmic = scale_log(logits.where(mask, FAR), sides, iterations, tolerance)
        torch.testing.assert_close(linear, logarithmic, atol=1e-12, rtol=1e-9)
    compiled = scale_compiled(logits.exp().where(mask, 0), sides, iterations)
    torch.testing.assert_close(compiled, scale_linear(logits.exp().where(mask, 0), sides, iterations, 0.0))


def test_who_asks_for_no_gradient_gets_the_same() -> None:
    scores, slack = draw(0, 3, 5, 6), draw(1, 3)
    for options in ({}, {"slack": slack}):
        learned = sinkhorn(scores.clone().requires_grad_(), **options)
        assert learned.requires_grad
        torch.testing.assert_close(sinkhorn(scores, **options), learned.detach())
    assert sinkhorn(scores, slack=slack.clone().requires_grad_()).requires_grad


@pytest.mark.parametrize("scale", [1e3, 1e8, 1e30, 3e38])
@pytest.mark.parametrize("slack", [None, 0.0])
def test_huge_scores_stay_finite(scale: float, slack: float | None) -> None:
    scores = ((2 * draw(5, 4, 6, 5, kind=torch.float32) - 1) * scale).requires_grad_()
    soft = sinkhorn(scores, temperature=0.005, slack=slack)
    (gradient,) = torch.autograd.grad(soft.square().sum(), scores)
    assert torch.isfinite(soft).all()
    assert torch.isfinite(gradient).all()
    assert (soft.sum(1) <= 1 + 1e-4).all()
    assert (soft.sum(2) <= 1 + 1e-4).all()


def test_tolerance_stops_early_and_reaches_what_it_promises() -> None:
    scores = draw(6, 5, 8, 8)
    exact = sinkhorn(scores, temperature=0.1, iterations=400)
    close = sinkhorn(scores, temperature=0.1, iterations=1000, tolerance=1e-6)
    assert not torch.equal(exact, close)
    torch.testing.assert_close(close, exact, atol=1e-4, rtol=0)
    torch.testing.assert_close(close.sum(2), torch.ones_like(close.sum(2)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("scale", [1.0, 400.0], ids=["linear", "logarithmic"])
@pytest.mark.parametrize("slack", [None, 0.3])
@pytest.mark.parametrize("iterations", [6, 7])
def test_gradient(scale: float, slack: float | None, iterations: int) -> None:
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[1, 2:] = mask[1, :, 2:] = False
    scores = (draw(7, 2, 3, 4) * scale).requires_grad_()

    def soft(values: Tensor) -> Tensor:
        return sinkhorn(values, mask, temperature=0.5, iterations=iterations, slack=slack)

    assert torch.autograd.gradcheck(soft, (scores,))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_half_precision_is_only_the_format_of_input_and_output(kind: torch.dtype) -> None:
    scores = draw(8, 2, 6, 6).to(kind)
    soft = sinkhorn(scores)
    assert soft.dtype == kind
    torch.testing.assert_close(soft, sinkhorn(scores.double()).to(kind))


def test_autocast_does_not_reach_the_iterations() -> None:
    scores = draw(9, 2, 6, 6, kind=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = sinkhorn(scores)
    torch.testing.assert_close(inside, sinkhorn(scores), atol=0, rtol=0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_scores_must_be_finite_except_on_padding(value: float) -> None:
    scores, mask = torch.zeros(1, 2, 3), torch.ones(1, 2, 3, dtype=torch.bool)
    scores[0, 0, 2] = value
    with pytest.raises(ValueError, match="scores must be finite"):
        sinkhorn(scores)
    mask[:, :, 2] = False
    torch.testing.assert_close(sinkhorn(scores, mask)[0, :, :2], torch.full((2, 2), 0.5))


@pytest.mark.parametrize("wrong", [{"temperature": 0.0}, {"iterations": 0}, {"tolerance": -1.0}])
def test_options_must_make_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        sinkhorn(torch.zeros(1, 2, 2), **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (3, 6), (6, 3)])
def test_projection_keeps_what_is_already_a_soft_assignment(rows: int, columns: int) -> None:
    soft = sinkhorn(draw(10, 3, rows, columns), temperature=0.2, iterations=400)
    torch.testing.assert_close(project(3 * soft), soft, atol=1e-8, rtol=0)


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (3, 6), (6, 3)])
def test_projection_is_the_nearest_in_relative_entropy(rows: int, columns: int) -> None:
    """No small feasible change makes it nearer: moving weight round a rectangle keeps the sums."""
    values = draw(11, 1, rows, columns)
    nearest = project(values, iterations=2000)
    small = 2 if rows <= columns else 1
    torch.testing.assert_close(nearest.sum(small), torch.ones_like(nearest.sum(small)))
    assert (nearest.sum(3 - small) <= 1 + 1e-9).all()

    def divergence(x: Tensor) -> Tensor:
        return (x * (x / values).log() - x + values).sum()

    for i in range(rows - 1):
        for j in range(columns - 1):
            for sign in (1e-5, -1e-5):
                moved = nearest.clone()
                moved[0, i, j] += sign
                moved[0, i + 1, j + 1] += sign
                moved[0, i + 1, j] -= sign
                moved[0, i, j + 1] -= sign
                assert divergence(moved) >= divergence(nearest)


def test_projection_gives_a_node_without_weight_an_even_share() -> None:
    soft = project(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]), iterations=100)
    expected = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]])
    torch.testing.assert_close(soft, expected, atol=0.02, rtol=0)


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_the_unit_of_what_is_projected_is_irrelevant(factor: float) -> None:
    values = torch.rand(2, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(project(factor * values), project(values), atol=1e-9, rtol=0)
