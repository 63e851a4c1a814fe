from __future__ import annotations

from inspect import signature
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_objective import compute_objective
from torch import Tensor

from quadmatch.decode import decode
from quadmatch.solvers.linear.hungarian import hungarian
from quadmatch.solvers.linear.sinkhorn import sinkhorn
from quadmatch.solvers.quadratic.frank_wolfe import frank_wolfe
from quadmatch.solvers.quadratic.frank_wolfe_hard import frank_wolfe_hard
from quadmatch.solvers.quadratic.frank_wolfe_rounds import frank_wolfe_rounds
from quadmatch.solvers.quadratic.objective import (
    expand_along,
    minimise_quartic,
    quadratic_gradient,
    quadratic_objective,
)

Problem = tuple[Tensor, Tensor, Tensor]


def test_what_is_not_said_is_as_documented() -> None:
    for solver in (frank_wolfe, frank_wolfe_hard, frank_wolfe_rounds, decode):
        assert signature(solver).parameters["weight"].default == 0.1  # λ of docs/design.md
    rounds = signature(frank_wolfe_rounds).parameters
    assert (rounds["outer"].default, rounds["inner"].default) == (10, 10)  # as released


def make_problem(seed: int, rows: int = 5, columns: int = 6, batch: int = 3) -> Problem:
    """Node similarities and two weighted, directed graphs."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    source, target = draw(batch, rows, rows), draw(batch, columns, columns)
    return draw(batch, rows, columns), source * (source > 0.4), target * (target > 0.4)


def list_permutations(rows: int, columns: int) -> Tensor:
    """Every assignment that matches all nodes of the smaller side."""
    if rows > columns:
        return list_permutations(columns, rows).transpose(1, 2)
    return torch.stack([torch.eye(columns, dtype=torch.float64)[list(p)] for p in permutations(range(columns), rows)])


@pytest.mark.parametrize("weight", [0.0, 0.1, 1.0])
def test_gradient_is_that_of_the_objective(weight: float) -> None:
    problem = make_problem(0)
    x = sinkhorn(make_problem(1)[0], temperature=0.3).requires_grad_()
    value = quadratic_objective(x, *problem, weight=weight)
    (expected,) = torch.autograd.grad(value.sum(), x)
    torch.testing.assert_close(quadratic_gradient(x, *problem, weight=weight), expected)
    probe, small = make_problem(2)[0] - 0.5, 1e-6
    ahead, behind = (quadratic_objective(x + sign * small * probe, *problem, weight=weight) for sign in (1, -1))
    torch.testing.assert_close((ahead - behind) / (2 * small), (expected * probe).sum((1, 2)), atol=1e-6, rtol=1e-6)


def test_line_search_finds_the_least_point_of_the_segment() -> None:
    problem = make_problem(3, batch=40)
    start, end = (sinkhorn(make_problem(seed, batch=40)[0], temperature=0.05) for seed in (4, 5))
    quartic = expand_along(start, end - start, *problem, weight=0.5)
    steps = minimise_quartic(quartic)

    def evaluate(step: Tensor) -> Tensor:
        moved = start + step[:, None, None] * (end - start)
        return quadratic_objective(moved, *problem, weight=0.5)

    least = evaluate(steps)
    assert ((steps > 0) & (steps < 1)).any()
    for step in torch.linspace(0, 1, 101, dtype=torch.float64):
        here = torch.full_like(steps, float(step))
        powers = here[:, None] ** torch.arange(5)
        torch.testing.assert_close((quartic * powers).sum(1), evaluate(here))
        assert (least <= evaluate(here) + 1e-9).all()


@settings(max_examples=4)
@given(st.integers(0, 999))
def test_least_point_of_any_quartic(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    quartic = torch.randn(20, 5, generator=generator, dtype=torch.float64)
    quartic[:5, 4] = 0
    quartic[:3, 3] = 0
    quartic[0] = 0
    powers = torch.linspace(0, 1, 2001, dtype=torch.float64)[:, None] ** torch.arange(5)
    found = minimise_quartic(quartic)
    value = (quartic * found[:, None] ** torch.arange(5)).sum(1)
    assert (value <= (quartic @ powers.T).amin(1) + 1e-9).all()
    inside = ((found > 0.01) & (found < 0.99))[:, None] & (torch.arange(5) > 0)
    points = quartic.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda q: minimise_quartic(q.where(inside, quartic)), (points,), atol=1e-4)


@pytest.mark.parametrize("direction", ["entropic", "shifted"])
@pytest.mark.parametrize("step", ["schedule", "line_search"])
@pytest.mark.parametrize("sizes", [(5, 5), (4, 6), (6, 4)])
def test_soft_solution_lowers_the_objective(direction: str, step: str, sizes: tuple[int, int]) -> None:
    problem = make_problem(6, *sizes, batch=20)
    options = {"direction": direction, "step": step, "temperature": 0.05, "weight": 0.3}
    soft = frank_wolfe(*problem, **options)  # type: ignore[arg-type]
    start = sinkhorn(problem[0], temperature=0.05)
    even = torch.full_like(start, 1 / max(sizes))
    before, after = (quadratic_objective(x, *problem, weight=0.3).mean() for x in (even, soft))
    assert after < before
    small = 2 if sizes[0] <= sizes[1] else 1
    torch.testing.assert_close(soft.sum(small), torch.ones_like(soft.sum(small)))


def test_structure_settles_what_the_nodes_leave_open() -> None:
    """Copies of a graph with nodes that look alike: only the quadratic term can tell them apart."""
    generator = torch.Generator().manual_seed(7)
    order = torch.randperm(8, generator=generator)
    edges = (torch.rand(8, 8, generator=generator) > 0.5).double()
    source = (edges + edges.T).clamp(max=1).fill_diagonal_(0)
    target = source[order][:, order]
    truth = torch.eye(8, dtype=torch.float64)[:, order]
    unary = 0.3 * truth + torch.rand(8, 8, generator=generator, dtype=torch.float64)
    assert not torch.equal(hungarian(unary[None])[0], truth)
    soft = frank_wolfe(unary[None], source[None], target[None], weight=0.3)
    assert torch.equal(hungarian(soft)[0], truth)
    solution = frank_wolfe_hard(unary[None], source[None], target[None], weight=0.3, start=soft)
    assert torch.equal(solution.assignment[0], truth)


def test_outer_rounds_restart_the_schedule() -> None:
    """The first step of a round has length one, so what came before survives only through its direction."""
    problem = make_problem(8)
    once = frank_wolfe(*problem, outer=1, inner=1)
    x = sinkhorn(problem[0], temperature=0.1)
    direction = sinkhorn(-quadratic_gradient(x, *problem, weight=0.1), temperature=0.1)
    torch.testing.assert_close(once, direction, atol=1e-3, rtol=0)
    twice = frank_wolfe(*problem, outer=2, inner=1)
    torch.testing.assert_close(twice, frank_wolfe(*problem, start=once, outer=1, inner=1))
    torch.testing.assert_close(frank_wolfe(*problem, outer=0, inner=5), x)


@pytest.mark.parametrize("direction", ["entropic", "shifted"])
@pytest.mark.parametrize("step", ["schedule", "line_search"])
def test_gradients_reach_every_input(direction: str, step: str) -> None:
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[1, 2:] = mask[1, :, 2:] = False
    inputs = tuple(part.requires_grad_() for part in make_problem(9, 3, 4, batch=2))

    def soft(*problem: Tensor) -> Tensor:
        return frank_wolfe(  # type: ignore[call-overload, no-any-return]
            *problem, mask, outer=2, inner=2, direction=direction, step=step, temperature=0.5, weight=0.3
        )

    assert torch.autograd.gradcheck(soft, inputs, atol=1e-4, fast_mode=True)


def test_detached_directions_leave_the_gradient_of_the_steps() -> None:
    unary, source, target = (part.requires_grad_() for part in make_problem(10))
    start = sinkhorn(unary.detach()).requires_grad_()
    inputs = (start, unary, source, target)

    def differentiate(**options: object) -> tuple[Tensor | None, ...]:
        soft = frank_wolfe(unary, source, target, start=start, weight=0.5, outer=1, detach=True, **options)  # type: ignore[arg-type]
        weights = torch.linspace(0, 1, soft[0].numel(), dtype=torch.float64).view_as(soft[0])
        return torch.autograd.grad((soft * weights).sum() + 0 * start.sum(), inputs, allow_unused=True)

    through_steps = differentiate(inner=1, step="line_search")
    assert all(gradient is not None and gradient.abs().max() > 0 for gradient in through_steps)
    fixed, *rest = differentiate(inner=3, step="schedule")
    assert fixed is not None
    assert not fixed.any()
    assert rest == [None, None, None]


@settings(max_examples=15)
@given(st.integers(0, 999), st.integers(1, 5), st.integers(1, 5), st.booleans(), st.sampled_from([0.1, 0.9]))
def test_hard_solution_lies_between_the_optimum_and_the_start(
    seed: int, rows: int, columns: int, masked: bool, weight: float
) -> None:
    problem = make_problem(seed, rows, columns)
    solution = frank_wolfe_hard(*problem, weight=weight, masked_residual=masked)
    options = {"weight": weight, "masked": masked}
    value = compute_objective(solution.assignment, *problem, **options)  # type: ignore[arg-type]
    torch.testing.assert_close(value, solution.objective)
    start = compute_objective(hungarian(problem[0]), *problem, **options)  # type: ignore[arg-type]
    assert (value <= start + 1e-12).all()
    every = list_permutations(rows, columns)
    for b in range(3):
        repeated = (part[b].expand(len(every), *part[b].shape) for part in problem)
        least = compute_objective(every, *repeated, **options).min()  # type: ignore[arg-type]
        assert solution.objective[b] >= least - 1e-9


@settings(max_examples=15)
@given(st.integers(0, 999), st.sampled_from(["line_search", "schedule"]))
def test_hard_solution_is_never_worse_than_a_given_permutation(seed: int, step: str) -> None:
    problem = make_problem(seed, 7, 7)
    start = frank_wolfe_hard(*problem, weight=0.5).assignment
    start = start[:, torch.randperm(7, generator=torch.Generator().manual_seed(seed))]
    solution = frank_wolfe_hard(*problem, start=start, weight=0.5, step=step)  # type: ignore[arg-type]
    assert (solution.objective <= quadratic_objective(start, *problem, weight=0.5) + 1e-12).all()
    assert (solution.assignment.sum((1, 2)) == 7).all()


def test_hard_solution_is_often_optimal_and_says_when_it_rests() -> None:
    problem = make_problem(11, 6, 6, batch=30)
    solution = frank_wolfe_hard(*problem, weight=0.1, iterations=60)
    every = list_permutations(6, 6)
    optimal = [
        bool(
            solution.objective[b]
            <= quadratic_objective(every, *(part[b].expand(720, *part[b].shape) for part in problem), weight=0.1).min()
            + 1e-9
        )
        for b in range(30)
    ]
    assert sum(optimal) >= 15
    assert solution.converged.float().mean() > 0.8
    assert (solution.iterations < 60)[solution.converged].all()
    short = frank_wolfe_hard(*problem, weight=0.9, iterations=1)
    assert (short.iterations == 1).all()


def test_partial_matching_leaves_outliers_unmatched() -> None:
    """Three nodes that belong together and one on each side that belongs to nobody."""
    unary = torch.eye(4, dtype=torch.float64)[None] * torch.tensor([1.0, 1.0, 1.0, 0.2], dtype=torch.float64)
    ring = torch.zeros(1, 4, 4, dtype=torch.float64)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        ring[0, i, j] = ring[0, j, i] = 1
    solution = frank_wolfe_hard(unary, ring, ring, partial=0.5)
    assert solution.assignment[0].diagonal().tolist() == [1, 1, 1, 0]
    assert solution.assignment.sum() == 3
    everybody = frank_wolfe_hard(unary, ring, ring)
    assert everybody.assignment.sum() == 4


@settings(max_examples=15)
@given(st.integers(0, 999))
def test_partial_solution_is_never_worse_than_a_given_partial_one(seed: int) -> None:
    unary, source, target = make_problem(seed)
    start = hungarian(unary, threshold=0.6)
    solution = frank_wolfe_hard(unary, source, target, start=start, partial=0.6)
    before = quadratic_objective(start, unary - 0.6, source, target, weight=0.1)
    assert (solution.objective <= before + 1e-12).all()


def test_masked_residual_forgives_edges_that_only_the_target_has() -> None:
    unary = torch.zeros(1, 3, 3)
    path = torch.tensor([[[0.0, 1, 0], [1, 0, 0], [0, 0, 0]]])
    full = torch.ones(1, 3, 3) - torch.eye(3)
    assert frank_wolfe_hard(unary, path, full, weight=1.0, masked_residual=True).objective == 0
    assert frank_wolfe_hard(unary, path, full, weight=1.0).objective == 4
    assert frank_wolfe_hard(unary, full, path, weight=1.0, masked_residual=True).objective == 4


@pytest.mark.parametrize(
    "wrong", [{"outer": -1}, {"inner": -1}, {"weight": 2.0}, {"direction": "straight"}, {"step": "long"}]
)
def test_soft_options_must_make_sense(wrong: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        frank_wolfe(*make_problem(0), **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"iterations": -1}, {"weight": -0.1}])
def test_hard_options_must_make_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        frank_wolfe_hard(*make_problem(0), **wrong)  # type: ignore[arg-type]
