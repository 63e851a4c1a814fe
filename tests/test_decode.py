import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_pairs import random_pair
from scipy.optimize import linear_sum_assignment

from quadmatch import GraphPair, Matching, collate
from quadmatch.decode import decode
from quadmatch.solvers.frank_wolfe import quadratic_objective
from quadmatch.solvers.sinkhorn import sinkhorn

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
        quadratic_objective(x, matching.assignment, a, b, weight=weight, masked_residual=masked)
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
        best = quadratic_objective(every, unary, a, b).min()
        found = [decode(matching, pair.mask, weight=weight).assignment for weight in (0.0, 0.1)]
        worth = [quadratic_objective(x, unary[:1], a[:1], b[:1]) for x in found]
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
        binary = replace(
            matching, structure_source=pair.source.adjacency, structure_target=pair.target.adjacency
        )
        alone = decode(binary, pair.mask)
        assert torch.allclose(alone.objective[0], together.objective[b])
        assert not together.assignment[b][~batch.mask[b]].any()
