"""The parts of the compiled search, each against what it promises."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadmatch.solvers.search.backtracking import search_all
from quadmatch.solvers.search.exchange import improve
from quadmatch.solvers.search.faq import choose_share, draw_relaxed, make_barycenter
from quadmatch.solvers.search.middle import choose, start_in_middle
from quadmatch.solvers.search.pairs import BALANCE, lay_end_to_end, measure_pairs, read_pair, weigh_pairs
from quadmatch.solvers.search.problem import differentiate, permute, state
from quadmatch.solvers.search.problem import evaluate as evaluate_chosen
from quadmatch.solvers.search.pruning import prune
from quadmatch.solvers.search.relaxation import RelaxedPair, climb, relax_pair

GO_ON = np.zeros(1, np.int64)
"""The flag that ends loops, not set."""


def evaluate(first, second, linear, even, p):
    return evaluate_chosen(first, permute(second, p), linear, p)


def multiply(first, second, x):
    return sum(f @ x @ s.T + f.T @ x @ s for f, s in zip(first, second))


def _problem(seed, n, m, *, directed=True, threshold=0.0, squares=False):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(n, n)), rng.normal(size=(m, m))
    if not directed:
        a, b = a + a.T, b + b.T
    np.fill_diagonal(a, 0)
    np.fill_diagonal(b, 0)
    linear = rng.normal(size=(n, m))
    return a, b, linear, state(a, b, linear, 0.7, threshold, squares)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 5),
    extra=st.integers(0, 2),
    squares=st.booleans(),
    partial=st.booleans(),
)
def test_the_square_problem_is_the_objective_turned_around(seed, n, extra, squares, partial):
    a, b, linear, problem = _problem(seed, n, n + extra, threshold=0.6 * partial, squares=squares)
    pairs = lay_end_to_end([a], [b], [linear])
    pairs.weights[:] = 0.7
    rng, gaps = np.random.default_rng(seed), []
    for _ in range(4):
        p = rng.permutation(len(problem[2]))
        objective, scores = np.zeros(1), np.zeros(n + extra)
        measure_pairs(pairs, np.concatenate((p[:n], np.zeros(extra, int))), 0.6 * partial, objective, scores)
        gaps.append(objective[0] + evaluate(*problem, p))
    assert np.ptp(gaps) == pytest.approx(0, abs=1e-9)
    if partial:
        assert gaps[0] == pytest.approx(0, abs=1e-9)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 6), extra=st.integers(0, 3), balance=st.booleans())
@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_edges_and_similarities_are_weighed_as_the_docstring_says(threshold, seed, n, extra, balance):
    from scipy.optimize import linear_sum_assignment

    rng, m = np.random.default_rng(seed), n + extra
    a, b, likeness = rng.random((n, n)), rng.random((m, m)), rng.random((n, m))
    pairs = lay_end_to_end([a], [b], [likeness])
    pairs.weights[:] = 0.3
    weigh_pairs(pairs, balance, threshold)
    *_, linear, weight = read_pair(pairs, 0)
    best, mean = likeness[linear_sum_assignment(-likeness)].mean(), likeness.mean()
    degrees = [(side**2 + side.T**2).sum(1).mean() / 2 for side in (a, b)]
    ratio = BALANCE * (best - mean) / (4 * np.mean(degrees))
    assert weight == pytest.approx(ratio / (1 + ratio) if balance else 0.3)
    unmatched = mean + threshold * (best - mean) if threshold else 0.0
    np.testing.assert_allclose(linear, (1 - weight) * (likeness - unmatched), atol=1e-12)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), extra=st.integers(0, 1), squares=st.booleans())
def test_backtracking_finds_the_best_of_all(seed, n, extra, squares):
    *_, problem = _problem(seed, n, n + extra, squares=squares)
    size = n + extra
    best = max(evaluate(*problem, np.array(p)) for p in permutations(range(size)))
    p = np.arange(size)
    search_all(*problem[:3], p)
    assert evaluate(*problem, p) == pytest.approx(best, abs=1e-9)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    extra=st.integers(0, 3),
    directed=st.booleans(),
    steps=st.integers(0, 40),
)
def test_exchange_ends_where_no_swap_gains(seed, n, extra, directed, steps):
    *_, problem = _problem(seed, n, n + extra, directed=directed)
    p = np.random.default_rng(seed).permutation(n + extra)
    before = evaluate(*problem, p)
    assert improve(*problem, p, steps, steps, n, 1, np.zeros(1, np.int64)) >= 0
    after = evaluate(*problem, p)
    assert sorted(p) == list(range(n + extra))
    assert after >= before - 1e-9
    for i in range(n + extra):
        for j in range(i):
            swapped = p.copy()
            swapped[[i, j]] = swapped[[j, i]]
            assert evaluate(*problem, swapped) <= after + 1e-6


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), extra=st.integers(0, 2), directed=st.booleans())
def test_the_gradient_is_that_of_the_relaxed_problem(seed, n, extra, directed):
    *_, (first, second, linear, even) = _problem(seed, n, n + extra, directed=directed)
    p, found = np.random.default_rng(seed).permutation(n + extra), np.empty((n + extra, n + extra))
    differentiate(first, permute(second, p), linear, p, found, GO_ON)
    assert np.allclose(found, (multiply(first, second, np.eye(n + extra)[p]) + linear)[:, p])
    for k, (f, s) in enumerate(zip(first, second)):
        sign = 1 if k < even else -1
        assert np.allclose(f, sign * f.T)
        assert np.allclose(s, sign * s.T)
    middle = multiply(first, second, np.full((n + extra, n + extra), 1 / (n + extra))) + linear
    rows = np.arange(n + extra)
    start = start_in_middle(first, second, linear, GO_ON)
    assert middle[rows, start].sum() == pytest.approx(middle[rows, choose(middle, GO_ON)].sum(), abs=1e-9)


@pytest.mark.parametrize("temperature", [0.0, 0.25, 1.0])
def test_relaxing_climbs_among_doubly_stochastic_matrices(temperature):
    for seed in range(5):
        a, b, linear, _ = _problem(seed, 7, 9)
        pair, x = RelaxedPair(a, b, linear, 0.7), np.full((7, 9), 1 / 9)
        before = (x * (pair.multiply(x) / 2 + linear)).sum()
        climb(pair, x, temperature, 30)
        assert (x * (pair.multiply(x) / 2 + linear)).sum() > before
        assert np.allclose(x.sum(1), 1, atol=0.03)
        assert (x.sum(0) <= 1.03).all()
        assert x.min() >= 0


@given(seed=st.integers(0, 10**6), n=st.integers(2, 7), extra=st.integers(0, 2), directed=st.booleans())
def test_relaxed_pairs_are_the_same_problem_without_added_rows(seed, n, extra, directed):
    a, b, linear, (first, second, *_) = _problem(seed, n, n + extra, directed=directed)
    x = np.random.default_rng(seed).random((n, n + extra))
    square = np.zeros((n + extra, n + extra))
    square[:n] = x
    assert np.allclose(RelaxedPair(a, b, linear, 0.7).multiply(x), multiply(first, second, square)[:n])


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("share", [0.02, 0.8])
def test_products_are_the_same_for_few_edges_and_many(share, directed):
    rng = np.random.default_rng(0)
    a, b = (rng.random((2, 120, 120)) < share) * rng.normal(size=(2, 120, 120))
    if not directed:
        a, b = a + a.T, b + b.T
    x = rng.random((120, 120))
    expected = 1.4 * (a @ x @ b.T + a.T @ x @ b)
    assert np.allclose(RelaxedPair(a, b, None, 0.7).multiply(x), expected)


def test_large_pairs_find_what_edges_or_similarities_tell():
    rng = np.random.default_rng(0)
    b = np.triu(rng.random((60, 60)) < 0.1, 1).astype(float)
    b = b + b.T
    order = rng.permutation(60)
    a = b[np.ix_(order, order)]
    columns, _ = relax_pair(a, b, None, 1.0, 0.5, False)
    assert (columns == order).mean() > 0.9
    hint = rng.normal(size=(60, 60)) + 3 * np.eye(60)[order]
    assert np.array_equal(relax_pair(a, b, hint, 0.3, 0.5, True)[0], order)
    spoiled = order.copy()
    spoiled[:5] = order[[1, 2, 3, 4, 0]]
    kept = prune(a, b, None, 1.0, 0.7, spoiled)
    assert (kept[:5] == 60).sum() >= 4
    assert (kept[5:] == order[5:]).mean() > 0.95


def test_pruning_drops_the_worst_first_and_looks_again():
    """The second pair costs more than it gives only while the first is matched, and less than half as much as that."""
    a, b = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, -0.5], [-0.5, 0.0]])
    both = np.arange(2)
    assert prune(a, b, np.diag([-2.0, 0.5]), 1.0, 0.0, both).tolist() == [2, 1]
    assert prune(a, b, np.diag([-2.0, -0.5]), 1.0, 0.0, both).tolist() == [2, 2]
    assert prune(a, b, np.diag([2.5, 2.0]), 1.0, 0.0, both).tolist() == [0, 1]


@given(seed=st.integers(0, 10**6), n=st.integers(1, 7), extra=st.integers(0, 3))
def test_choosing_is_the_best_linear_assignment(seed, n, extra):
    from scipy.optimize import linear_sum_assignment

    worth = np.random.default_rng(seed).normal(size=(n, n + extra))
    rows, columns = linear_sum_assignment(-worth)
    assert worth[np.arange(n), choose(worth, GO_ON)].sum() == pytest.approx(worth[rows, columns].sum())


@pytest.mark.parametrize(("n", "m"), [(1, 1), (30, 30), (20, 35)])
@pytest.mark.parametrize("stop", [0, 1])
def test_an_assignment_that_is_stopped_is_whole(n, m, stop):
    from scipy.optimize import linear_sum_assignment

    worth = np.random.default_rng(n).normal(size=(n, m)) + np.outer(np.arange(n), np.arange(m)) / n
    columns = choose(worth, np.array([stop]))
    assert len(set(columns.tolist())) == n
    assert (columns >= 0).all()
    most = worth[linear_sum_assignment(worth, maximize=True)].sum()
    found = worth[np.arange(n), columns].sum()
    assert found >= (worth.mean() * n if stop else most) - 1e-6


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_a_random_start_is_doubly_stochastic_and_halfway_to_the_middle(n):
    start = draw_relaxed(n, np.random.default_rng(0))
    np.testing.assert_allclose(start.sum(0), 1, atol=1e-9)
    np.testing.assert_allclose(start.sum(1), 1, atol=1e-3)  # Rows come to 1 only in the end of many rounds.
    assert (start >= make_barycenter(n) / 2).all()
    assert n < 3 or start.std() > 0.01


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 7))
def test_the_step_of_faq_is_the_least_point_between_two_ends(seed, n):
    rng = np.random.default_rng(seed)
    source, target, linear = rng.normal(size=(3, n, n))
    relaxed, chosen = draw_relaxed(n, rng), rng.permutation(n)
    vertex = np.eye(n)[chosen]

    def evaluate(share: float) -> float:
        x = vertex + share * (relaxed - vertex)
        return float((linear * x).sum() + np.trace(source.T @ x @ target @ x.T))

    share = choose_share(source, target, linear, relaxed - vertex, chosen)
    assert 0 <= share <= 1
    assert evaluate(share) <= min(evaluate(other) for other in np.linspace(0, 1, 101)) + 1e-9
