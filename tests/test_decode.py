import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_objective import compute_objective
from random_pairs import random_pair
from scipy.optimize import linear_sum_assignment

from quadmatch import GraphPair, Matching, collate
from quadmatch.decode import decode, find_common
from quadmatch.solvers.linear.sinkhorn import sinkhorn
from quadmatch.solvers.quadratic.objective import quadratic_objective

sizes = st.integers(0, 6)
seeds = st.integers(0, 999)


def _random(n: int, m: int, seed: int) -> tuple[Matching, GraphPair]:
    pair, *_ = random_pair(n, m, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(1, n, m, generator=generator, dtype=torch.float64)
    assignment = sinkhorn(scores, pair.mask, temperature=0.2)
    weights = [1 + torch.rand(1, k, k, generator=generator, dtype=torch.float64) for k in (n, m)]
    structures = [w * a for w, a in zip(weights, (pair.source.adjacency, pair.target.adjacency))]
    return Matching(scores, assignment, *structures), pair


@given(sizes, sizes, seeds)
def test_without_weight_it_is_scipy_on_the_assignment(n, m, seed):
    matching, pair = _random(n, m, seed)
    solution = decode(matching, pair.mask, weight=0.0)
    rows, columns = linear_sum_assignment(matching.assignment[0].numpy(), maximize=True)
    wanted = torch.zeros(n, m, dtype=torch.float64)
    wanted[rows, columns] = 1
    assert torch.equal(solution.assignment[0], wanted)
    assert float(solution.objective[0]) == pytest.approx(-float((wanted * matching.assignment[0]).sum()))
    assert bool(solution.converged[0])


@given(sizes, sizes, seeds, st.sampled_from([0.05, 0.3]), st.booleans(), st.booleans())
def test_never_worse_than_hungarian_alone(n, m, seed, weight, binary, masked):
    matching, pair = _random(n, m, seed)
    options = {"binary_structure": binary, "masked_residual": masked}
    solution = decode(matching, pair.mask, weight=weight, **options)
    hungarian = decode(matching, pair.mask, weight=0.0).assignment
    a, b = matching.structure_source, matching.structure_target
    if binary:
        a, b = pair.source.adjacency, pair.target.adjacency
    before, after = (
        compute_objective(x, matching.assignment, a, b, weight=weight, masked=masked)
        for x in (hungarian, solution.assignment)
    )
    assert float(after) <= float(before) + 1e-9
    if min(n, m):  # a mask without entries does not say whether the other graph has nodes
        assert torch.allclose(after, solution.objective)
    assert set(solution.assignment.unique().tolist()) <= {0.0, 1.0}
    assert float(solution.assignment.sum()) == min(n, m)
    assert (solution.assignment.sum(1) <= 1).all()
    assert (solution.assignment.sum(2) <= 1).all()


def test_closer_than_hungarian_to_the_best_of_all_permutations():
    orders = list(itertools.permutations(range(5)))
    every = torch.stack([torch.eye(5, dtype=torch.float64)[list(order)] for order in orders])
    gaps = torch.zeros(2, dtype=torch.float64)
    for seed in range(40):
        matching, pair = _random(5, 5, seed)
        unary, a, b = (
            values.expand(len(every), -1, -1)
            for values in (matching.assignment, matching.structure_source, matching.structure_target)
        )
        best = quadratic_objective(every, unary, a, b, weight=0.1).min()
        found = [decode(matching, pair.mask, weight=weight).assignment for weight in (0.0, 0.1)]
        worth = [quadratic_objective(x, unary[:1], a[:1], b[:1], weight=0.1) for x in found]
        gaps += torch.cat(worth) - best
    assert 0 <= gaps[1] < 0.7 * gaps[0]


@given(sizes, sizes, seeds, st.sampled_from([0.0, 0.1]))
def test_with_a_threshold_poor_matches_are_left_out(n, m, seed, weight):
    matching, pair = _random(n, m, seed)
    none = decode(matching, pair.mask, weight=0.0, threshold=1.01)
    assert not none.assignment.any()
    some = decode(matching, pair.mask, weight=weight, threshold=0.3).assignment
    full = decode(matching, pair.mask, weight=weight).assignment
    assert float(some.sum()) <= float(full.sum())
    if weight == 0:
        assert (matching.assignment[some > 0] > 0.3).all()


def test_batch_mates_and_gradients_stay_out():
    made = [_random(4, 5, 1), _random(6, 3, 2)]
    batch = collate([pair for _, pair in made])
    joined = torch.zeros(batch.mask.shape, dtype=torch.float64)
    for b, (matching, _) in enumerate(made):
        n, m = matching.unary.shape[1:]
        joined[b, :n, :m] = matching.assignment[0]
    structures = batch.source.adjacency, batch.target.adjacency
    together = decode(Matching(joined, joined.requires_grad_(), *structures), batch.mask)
    assert not together.assignment.requires_grad
    for b, (matching, pair) in enumerate(made):
        n, m = matching.unary.shape[1:]
        binary = replace(matching, structure_source=pair.source.adjacency, structure_target=pair.target.adjacency)
        alone = decode(binary, pair.mask)
        assert torch.allclose(alone.objective[0], together.objective[b])
        assert not together.assignment[b][~batch.mask[b]].any()


def _solve(scores: torch.Tensor) -> torch.Tensor:
    chosen = torch.zeros_like(scores)
    chosen[linear_sum_assignment(scores.numpy(), maximize=True)] = 1
    return chosen


def _follow_the_published_loops(
    x: torch.Tensor, unary: torch.Tensor, a: torch.Tensor, b: torch.Tensor, weight: float, masked: bool
) -> torch.Tensor:
    """Ten rounds of ten steps, written out for one pair."""
    for _ in range(10):
        for k in range(10):
            u = a * (a - x @ b @ x.T) if masked else a - x @ b @ x.T
            gradient = -2 * weight * (u.T @ x @ b + u @ x @ b.T) - (1 - weight) * unary
            x = x + 2 / (k + 2) * (_solve(-gradient) - x)
        x = _solve(x)
    return x


@settings(max_examples=30)
@given(st.integers(1, 9), st.integers(1, 9), seeds, st.sampled_from([0.1, 0.5]))
def test_the_published_inferences_are_their_loops(n, m, seed, weight):
    matching, pair = _random(n, m, seed)
    found, unary = matching.assignment[0], matching.unary[0].exp()
    deep = matching.structure_source[0], matching.structure_target[0]
    binary = pair.source.adjacency[0], pair.target.adjacency[0]
    printed = decode(matching, pair.mask, weight=weight, algorithm="paper")
    wanted = _follow_the_published_loops(found, unary, *deep, weight, masked=False)
    assert torch.equal(printed.assignment[0], wanted)
    worth = quadratic_objective(wanted[None], unary[None], *(one[None] for one in deep), weight=weight)
    torch.testing.assert_close(printed.objective, worth)
    released = decode(matching, pair.mask, weight=weight, algorithm="released")
    wanted = _follow_the_published_loops(_solve(found), found, *binary, weight, masked=True)
    assert torch.equal(released.assignment[0], wanted)
    worth = compute_objective(wanted[None], found[None], *(one[None] for one in binary), weight=weight, masked=True)
    torch.testing.assert_close(released.objective, worth)


def test_published_inferences_are_others_than_the_descent():
    made = [_random(8, 8, seed) for seed in range(40)]
    found = {
        name: [decode(matching, pair.mask, weight=0.3, **options).assignment for matching, pair in made]
        for name, options in {
            "descent": {},
            "paper": {"algorithm": "paper"},
            "released": {"algorithm": "released"},
            "alike": {"binary_structure": True, "masked_residual": True},
        }.items()
    }
    for one, other in itertools.combinations(found, 2):
        same = sum(torch.equal(a, b) for a, b in zip(found[one], found[other]))
        assert same < len(made), (one, other)


@pytest.mark.parametrize("algorithm", ["paper", "released"])
def test_published_inferences_in_a_batch_with_a_threshold_and_with_huge_scores(algorithm):
    made = [_random(4, 5, 1), _random(7, 3, 2), _random(6, 6, 3)]
    batch = collate([pair for _, pair in made])
    wide = {name: torch.zeros(batch.mask.shape, dtype=torch.float64) for name in ("unary", "assignment")}
    for row, (matching, _) in enumerate(made):
        n, m = matching.unary.shape[1:]
        for name, values in wide.items():
            values[row, :n, :m] = getattr(matching, name)[0]
            values[row, n:] = 0.3 if name == "unary" else 0  # what lies on padding counts for nothing
    joined = Matching(**wide, structure_source=batch.source.adjacency, structure_target=batch.target.adjacency)
    together = decode(joined, batch.mask, algorithm=algorithm)
    some = decode(joined, batch.mask, algorithm=algorithm, threshold=0.3).assignment
    for row, (matching, pair) in enumerate(made):
        n, m = matching.unary.shape[1:]
        binary = replace(matching, structure_source=pair.source.adjacency, structure_target=pair.target.adjacency)
        alone = decode(binary, pair.mask, algorithm=algorithm)
        assert torch.equal(together.assignment[row, :n, :m], alone.assignment[0])
        assert torch.equal(some[row, :n, :m], alone.assignment[0] * (matching.assignment[0] > 0.3))
    huge = replace(joined, unary=joined.unary * 1e6)
    assert decode(huge, batch.mask, algorithm=algorithm).objective.isfinite().all()
    with pytest.raises((ValueError, TypeError), match="algorithm"):  # tests check annotations first
        decode(joined, batch.mask, algorithm="printed")


def test_the_surest_pair_of_nodes_says_how_sure_a_match_is():
    matching, _ = _random(3, 4, 0)
    assert find_common(matching) is None
    surest = find_common(
        replace(matching, matchable=(torch.full((1, 3), 8.0).double(), torch.full((1, 4), 8.0).double()))
    )
    assert surest is not None
    assert surest.shape == (1,)
    assert surest.item() == pytest.approx(matching.assignment.max().item(), abs=2e-3)
