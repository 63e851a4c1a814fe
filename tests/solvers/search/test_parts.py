"""The parts of the compiled search, each against what it promises."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadmatch.solvers.compilation import run_uncompiled
from quadmatch.solvers.search import faq as faq_module
from quadmatch.solvers.search import pairs as pairs_module
from quadmatch.solvers.search import relaxation
from quadmatch.solvers.search.backtracking import search_all
from quadmatch.solvers.search.exchange import improve
from quadmatch.solvers.search.faq import choose_share, draw_relaxed, faq, make_barycenter
from quadmatch.solvers.search.middle import choose, start_in_middle
from quadmatch.solvers.search.pairs import (
    BALANCE,
    lay_end_to_end,
    measure_pairs,
    read_pair,
    weigh_pairs,
    weigh_stoppably,
)
from quadmatch.solvers.search.problem import differentiate, permute, state
from quadmatch.solvers.search.problem import evaluate as evaluate_chosen
from quadmatch.solvers.search.pruning import prune
from quadmatch.solvers.search.relaxation import (
    STEPS_HARD,
    STEPS_SOFT,
    WARM,
    RelaxedPair,
    choose_best,
    choose_parabola,
    climb,
    point,
    relax_pair,
    scale_rows,
)

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


@pytest.mark.parametrize("known", [True, False])
def test_pairs_that_lie_end_to_end_are_read_as_they_were(known):
    rng, sizes = np.random.default_rng(0), [(2, 3), (0, 2), (1, 1), (3, 3)]
    sources, targets = ([rng.integers(0, 9, (size, size)) for size in side] for side in zip(*sizes))
    linears = [rng.random((n, m)).astype(np.float32) for n, m in sizes]
    pairs = lay_end_to_end(sources, targets, linears if known else None)
    assert pairs.sizes.tolist() == [list(one) for one in sizes]
    assert pairs.starts[:, 3].tolist() == [0, 3, 5, 6]
    assert pairs.stop.tolist() == [0]
    pairs.weights[:] = (0.1, 0.2, 0.3, 0.4)
    for index, (a, b, linear) in enumerate(zip(sources, targets, linears)):
        *found, weight = read_pair(pairs, index)
        assert weight == pairs.weights[index]
        for one, expected in zip(found, (a, b, linear if known else np.zeros((len(a), 0)))):
            assert one.dtype == np.float64
            assert np.array_equal(one, expected)


def test_the_weight_is_half_without_edges_and_whole_where_similarities_do_not_differ():
    edges, none, likeness = np.ones((2, 2)) - np.eye(2), np.zeros((2, 2)), np.array([[0.9, 0.2], [0.1, 0.3]])
    pairs = lay_end_to_end([edges, none, none, edges], [edges, none, edges, none], [0 * likeness + 3, *3 * [likeness]])
    weigh_pairs(pairs, True, 0.0)
    gain = likeness.trace() / 2 - likeness.mean()
    one_sided = BALANCE * gain / (4 * 0.5)  # one of the graphs has an edge at each node, the other none
    assert pairs.weights[:2].tolist() == [1.0, 0.5]
    np.testing.assert_allclose(pairs.weights[2:], one_sided / (1 + one_sided))
    np.testing.assert_allclose(read_pair(pairs, 1)[2], likeness / 2)
    assert not read_pair(pairs, 0)[2].any()


@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_an_assignment_is_made_only_where_the_weight_or_the_threshold_asks_for_it(monkeypatch, balance, threshold):
    asked, linear = [], np.eye(3)
    monkeypatch.setattr(pairs_module, "choose", lambda *given: asked.append(given) or choose(*given))
    pairs = lay_end_to_end([np.ones((3, 3))] * 2, [np.ones((3, 3))] * 2, [linear] * 2)
    run_uncompiled(weigh_pairs)(pairs, balance, threshold)
    assert len(asked) == (2 if balance or threshold else 0)


@pytest.mark.parametrize(("long", "limit"), [(True, 33), (False, 34)])
def test_weighing_hears_ctrl_c_where_sizes_make_it_long(monkeypatch, long, limit):
    heard = []
    monkeypatch.setattr(pairs_module, "LONG", limit)
    monkeypatch.setattr(pairs_module, "call_stoppably", lambda *given, long: heard.append(long))
    graphs = [np.zeros((size, size)) for size in (2, 1, 3, 4)]
    weigh_stoppably(lay_end_to_end(graphs[:2], graphs[2:]), True, 0.0, np.inf)  # 2·3² + 1·4²
    assert heard == [long]


def measure_plainly(a, b, linear, weight, p, threshold):
    """The objective of a match and the scores of its nodes, from the definitions; a partner of len(b) is none."""
    matched = np.flatnonzero(p < len(b))
    kept = p[matched]
    x, y = a[np.ix_(matched, matched)], b[np.ix_(kept, kept)]
    total = -linear[matched, kept].sum() + weight * (-2 * (x * y) if threshold else (x - y) ** 2).sum()
    for side, nodes in ((a, matched), (b, kept)):
        total += weight * threshold * ((side[nodes] ** 2).sum() + (side[:, nodes] ** 2).sum()) / 2
    agreed, whole = np.abs(x) + np.abs(y) - np.abs(x - y), np.abs(x) + np.abs(y)
    agreed, whole = agreed.sum(0) + agreed.sum(1), whole.sum(0) + whole.sum(1)
    scores = np.full(len(a), -1.0)
    scores[matched] = np.divide(agreed, whole, out=np.ones(len(matched)), where=whole > 0)
    return total, scores


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.3, 1.0]), known=st.booleans())
@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_objectives_and_scores_are_those_of_their_definitions(threshold, seed, share, known):
    rng, sizes = np.random.default_rng(seed), [(3, 5), (1, 2), (4, 4)]
    a, b = ([_draw_graph(rng, size, share) for size in side] for side in zip(*sizes))
    linears = [rng.normal(size=one) * known for one in sizes]
    pairs = lay_end_to_end(a, b, linears if known else None)
    pairs.weights[:] = rng.random(3)
    matches = [np.where(rng.random(m) < 0.7, rng.permutation(m), m) for _, m in sizes]
    objectives, scores = np.zeros(3), np.full(11, -1.0)
    measure_pairs(pairs, np.concatenate(matches), threshold, objectives, scores)
    for index, (n, _) in enumerate(sizes):
        given = (a[index], b[index], linears[index], pairs.weights[index], matches[index][:n], threshold)
        total, expected = measure_plainly(*given)
        assert objectives[index] == pytest.approx(total)
        np.testing.assert_allclose(scores[pairs.starts[index, 3] :][:n], expected, atol=1e-12)


def _draw_graph(rng, size, share=1.0):
    graph = rng.normal(size=(size, size)) * (rng.random((size, size)) < share)
    np.fill_diagonal(graph, 0)
    return graph


@given(seed=st.integers(0, 10**6), n=st.integers(1, 7), extra=st.integers(0, 2), known=st.booleans())
def test_pruning_drops_by_what_the_objective_of_a_partial_match_loses(seed, n, extra, known):
    rng, m = np.random.default_rng(seed), n + extra
    a, b, linear = _draw_graph(rng, n), _draw_graph(rng, m), rng.normal(size=(n, m)) * known
    columns = np.where(rng.random(n) < 0.9, rng.permutation(m)[:n], m)
    found = prune(a, b, linear if known else None, 0.7, 0.4, columns)

    def measure(match):
        return measure_plainly(a, b, linear, 0.7, match, 0.4)[0]

    expected = columns.copy()
    while True:
        without = [np.where(np.arange(n) == i, m, expected) for i in range(n)]
        gains = np.array([measure(one) - measure(expected) for one in without])
        drop = gains < min(0, gains.min() / 2)
        if not drop.any():
            break
        expected[drop] = m
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("size", "share", "sparse"), [(99, 0.02, False), (101, 0.02, True), (101, 0.07, False)])
def test_products_are_sparse_where_graphs_are_large_and_edges_few(size, share, sparse):
    matrix = (np.random.default_rng(0).random((size, size)) < share) * 1.0
    assert isinstance(relaxation._compress(matrix), np.ndarray) is not sparse


@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), extra=st.integers(0, 2))
def test_the_best_columns_have_the_largest_sum_or_the_least(seed, n, extra):
    values = np.random.default_rng(seed).normal(size=(n, n + extra))
    sums = {one: values[np.arange(n), one].sum() for one in permutations(range(n + extra), n)}
    assert tuple(choose_best(values)) == max(sums, key=sums.get)
    assert tuple(choose_best(values, least=True)) == min(sums, key=sums.get)


@pytest.mark.parametrize("slope", [-3.0, -0.5, 0.0, 0.5, 3.0])
@pytest.mark.parametrize("curvature", [-4.0, -1.0, -0.3, 0.0, 0.3, 1.0, 4.0])
def test_the_top_of_a_parabola_is_above_every_other_place(slope, curvature):
    place = choose_parabola(slope, curvature)
    assert 0 <= place <= 1
    x = np.linspace(0, 1, 1001)
    assert slope * place + curvature * place**2 >= (slope * x + curvature * x**2).max()
    assert place == 0 or slope * place + curvature * place**2 > 0


def scale_plainly(kernel, most):
    """Rows, then columns, are divided by their sums, until a round changes no column by a thousandth."""
    left = np.ones((1, len(kernel)))
    for _ in range(most):
        rows = 1 / (kernel * left).sum(1, keepdims=True)
        error = np.abs((kernel * rows * left).sum(0) - 1).max()
        left = 1 / (kernel * rows).sum(0, keepdims=True)
        if error < 1e-3:
            break
    return kernel * rows * left


@pytest.mark.parametrize("spread", [0.5, 3.0, 12.0])
@pytest.mark.parametrize("size", [1, 2, 9])
def test_scaling_is_sinkhorns_and_ends_after_a_hundred_rounds(size, spread):
    for seed in range(5):
        kernel = np.exp(spread * np.random.default_rng(seed).normal(size=(size, size)))
        found, once = kernel.copy(), kernel.copy()
        scale_rows(found, GO_ON)
        np.testing.assert_allclose(found, scale_plainly(kernel, 100), rtol=1e-6, atol=1e-300)
        np.testing.assert_allclose(found.sum(0), 1)
        scale_rows(once, np.ones(1, np.int64))
        np.testing.assert_allclose(once, scale_plainly(kernel, 1), rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (4, 7), (1, 3)])
@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_a_direction_is_gibbs_at_the_temperature_in_units_of_the_spread(n, m, temperature):
    """Scaling changes no cross difference of logarithms: they are those of the gradient over temperature and spread."""
    gradient = np.random.default_rng(n).normal(size=(n, m)) + np.arange(m) + 5 * np.arange(n)[:, None]
    whole = np.zeros((m, m))
    whole[:n] = gradient
    centred = whole - whole.mean(0) - whole.mean(1, keepdims=True) + whole.mean()
    x = point(gradient, temperature)
    assert x.shape == (n, m)
    np.testing.assert_allclose(x.sum(1), 1, atol=5e-3)
    logs, wanted = np.log(x), gradient / (temperature * np.sqrt((centred**2).mean()))
    cross = (one - one[:1] - one[:, :1] + one[0, 0] for one in (logs, wanted))
    np.testing.assert_allclose(next(cross), next(cross), atol=1e-9)
    hard = point(gradient, 0.0)
    assert np.array_equal(hard, np.eye(m)[choose(gradient, GO_ON)])


def test_a_direction_of_no_gradient_is_even_and_a_cold_one_is_finite():
    np.testing.assert_allclose(point(np.ones((2, 4)), 0.5), np.full((2, 4), 0.25))
    cold = point(np.random.default_rng(0).normal(size=(6, 6)), 1e-9)
    assert np.isfinite(cold).all()
    assert cold.min() > 0


def climb_plainly(a, b, linear, weight, x, temperature, steps, warm=()):
    """Exact steps along the directions of `point`, by objectives at three places of a line instead of derivatives."""
    off = 1 - np.eye(len(a))

    def measure(x, share):
        charge = weight * np.trace(off @ x @ (b * b) @ x.T) if len(a) < len(b) else 0
        return share * (2 * weight * np.trace(a.T @ x @ b @ x.T) - charge) + (linear * x).sum()

    def differentiate(x, share):
        charge = weight * off @ x @ (b * b + (b * b).T) if len(a) < len(b) else 0
        return share * (2 * weight * (a @ x @ b.T + a.T @ x @ b) - charge) + linear

    for step in range(steps):
        share = warm[step] if step < len(warm) else 1.0
        move = point(differentiate(x, share), temperature) - x
        start, half, end = (measure(x + t * move, share) for t in (0, 0.5, 1))
        bend, slope = 2 * (start - 2 * half + end), 4 * half - 3 * start - end
        places = [0.0, 1.0, *([min(max(-slope / (2 * bend), 0), 1)] if bend < 0 else [])]
        best = max(places, key=lambda t: slope * t + bend * t * t)
        x = x + best * move
        if share == 1 and slope * best + bend * best**2 <= 1e-5 * abs(measure(x, 1.0)):
            return x, step + 1
    return x, steps


@pytest.mark.parametrize(("n", "m"), [(6, 6), (5, 7)])
@pytest.mark.parametrize("temperature", [0.0, 0.5])
@pytest.mark.parametrize("warm", [(), (0.25, 0.5)])
def test_a_climb_takes_exact_steps_until_one_gains_no_share_of_the_objective(n, m, temperature, warm):
    counts = set()
    for seed in range(6):
        a, b, linear, _ = _problem(seed, n, m, directed=seed % 2 == 0)
        for most in (1, 3, 25):
            x = np.full((n, m), 1 / m)
            expected, steps = climb_plainly(a, b, linear, 0.7, x.copy(), temperature, most, warm)
            counts.add(made := climb(RelaxedPair(a, b, linear, 0.7), x, temperature, most, warm=warm))
            assert made == steps
            np.testing.assert_allclose(x, expected, atol=1e-8)
    assert len(counts) > 3
    x = np.full((n, m), 1 / m)
    assert climb(RelaxedPair(a, b, linear, 0.7), x, temperature, 25, warm=warm, deadline=-np.inf) == 1


@pytest.mark.parametrize("led", [True, False])
@pytest.mark.parametrize("over", [True, False])
def test_a_relaxation_is_soft_then_hard_or_led_by_the_linear_term(monkeypatch, led, over):
    calls = []

    def record(pair, x, temperature, steps, *, warm=(), deadline):
        calls.append((temperature, steps, warm, x.copy()))
        return len(calls) + 4

    monkeypatch.setattr(relaxation, "climb", record)
    a, b, linear, _ = _problem(1, 4, 6)
    columns, taken = relax_pair(a, b, linear, 0.7, 0.5, led, -np.inf if over else np.inf)
    even = np.full((4, 6), 1 / 6)
    middle = RelaxedPair(a, b, linear, 0.7).multiply(even) + linear
    chosen = np.eye(6)[choose(middle, np.array([int(over)]))]
    soft = [] if led else [(0.5, STEPS_SOFT, (), even)]
    hard = [] if over else [(0.0, STEPS_HARD, WARM if led else (), chosen if led else even)]
    assert [one[:3] for one in calls] == [one[:3] for one in soft + hard]
    assert all(np.allclose(one[3], other[3]) for one, other in zip(calls, soft + hard))
    assert taken == sum(range(5, 5 + len(calls)))
    if led:
        assert np.array_equal(np.eye(6)[columns], chosen)


def minimise_plainly(source, target, linear, x, rounds, tolerance):
    """Frank–Wolfe as it is described, each step the best of the line's ends and of the bottom between them."""
    from scipy.optimize import linear_sum_assignment

    def measure(x):
        return float((linear * x).sum() + np.trace(source.T @ x @ target @ x.T))

    count = 0
    while count < rounds:
        count += 1
        gradient = linear + source @ x @ target.T + source.T @ x @ target
        move = np.eye(len(x))[linear_sum_assignment(gradient)[1]] - x
        start, half, end = (measure(x + t * move) for t in (0, 0.5, 1))
        bend, slope = 2 * (start - 2 * half + end), 4 * half - 3 * start - end
        places = [0.0, 1.0, *([min(max(-slope / (2 * bend), 0), 1)] if bend > 0 else [])]
        move = min(places, key=lambda t: slope * t + bend * t * t) * move
        x = x + move
        if np.sqrt((move**2).sum() / len(x)) < tolerance:
            break
    return linear_sum_assignment(-x)[1].tolist(), count


@pytest.mark.parametrize("tolerance", [0.03, 0.3, 0.0])
def test_faq_with_a_linear_term_takes_the_steps_that_are_described(tolerance):
    counts = set()
    for seed in range(12):
        source, target, linear = np.random.default_rng(seed).normal(size=(3, 6, 6))
        start = make_barycenter(6)
        assert np.allclose(start, 1 / 6)
        found, rounds = faq(source, target, 3 * linear, start, iterations=9, tolerance=tolerance)
        assert (found.tolist(), rounds) == minimise_plainly(source, target, 3 * linear, start, 9, tolerance)
        counts.add(rounds)
    assert len(counts) > 1 or not tolerance


@pytest.mark.parametrize(("deadline", "rounds"), [(-np.inf, 1), (12.5, 2), (13.5, 3), (14.0, 4), (np.inf, 8)])
def test_faq_begins_no_round_that_would_end_after_the_deadline(monkeypatch, deadline, rounds):
    """Each round takes one second by this clock, which stands at ten when the first one begins."""
    clock = iter(range(10, 100))
    monkeypatch.setattr(faq_module, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    source, target = np.random.default_rng(0).normal(size=(2, 5, 5))
    _, made = faq(source, target, np.zeros((5, 5)), make_barycenter(5), iterations=8, tolerance=0.0, deadline=deadline)
    assert made == rounds
