"""Each function of the search beside another that computes the same from its definition, however slowly."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadmatch.solvers.compilation import run_uncompiled
from quadmatch.solvers.search import backtracking, exchange
from quadmatch.solvers.search.exchange import CLIMB, ROUNDING, improve
from quadmatch.solvers.search.isomorphism import SAME, describe_nodes, find_isomorphism, pair_by_rank, rank
from quadmatch.solvers.search.problem import DENSE, differentiate, evaluate, is_symmetric, permute, state, weigh_edges

GO_ON, STOP = np.zeros(1, np.int64), np.ones(1, np.int64)
"""The flag that ends loops, not set and set."""
seeds = st.integers(0, 2**32 - 1)


def draw_problem(seed, size, even=1, odd=0, share=1.0):
    """Terms of symmetric matrices, then antisymmetric ones, a share of them not zero, and a linear term."""
    rng = np.random.default_rng(seed)
    signs = np.repeat((1.0, -1.0), (even, odd))[:, None, None]
    sides = []
    for _ in range(2):
        drawn = np.tril(rng.normal(size=(even + odd, size, size)) * (rng.random((even + odd, size, size)) < share), -1)
        sides.append(drawn + signs * drawn.transpose(0, 2, 1))
    return (*sides, rng.normal(size=(size, size)), even)


def compute_objective(first, second, linear, p):
    """What a permutation is worth, from the definition."""
    x = np.eye(len(p))[p]
    return sum(np.trace(f.T @ x @ s @ x.T) for f, s in zip(first, second)) + np.trace(linear.T @ x)


def compute_gradient(first, second, linear, p):
    """Its derivative by every entry of the matrix of a permutation."""
    x = np.eye(len(p))[p]
    return sum(f @ x @ s.T + f.T @ x @ s for f, s in zip(first, second)) + linear


def swap(p, i, j):
    other = p.copy()
    other[[i, j]] = p[[j, i]]
    return other


@given(seed=seeds, size=st.integers(1, 9), even=st.integers(1, 2), odd=st.integers(0, 1))
def test_an_objective_is_the_sum_of_products_over_all_pairs_and_nodes(seed, size, even, odd):
    first, second, linear, _ = draw_problem(seed, size, even, odd)
    p = np.random.default_rng(seed).permutation(size)
    chosen = permute(second, p)
    assert np.array_equal(chosen, second[:, p][:, :, p])
    assert evaluate(first, chosen, linear, p) == pytest.approx(compute_objective(first, second, linear, p), abs=1e-9)


@pytest.mark.parametrize("size", [*range(1, 10), *range(DENSE - 1, DENSE + 6)])
@pytest.mark.parametrize("share", [1.0, 0.03])
def test_a_gradient_of_any_size_and_density_is_the_derivative(size, share):
    first, second, linear, _ = draw_problem(size, size, 2, 1, share)
    p, found = np.random.default_rng(size).permutation(size), np.full((size, size), np.nan)
    differentiate(first, permute(second, p), linear, p, found, GO_ON)
    np.testing.assert_allclose(found, compute_gradient(first, second, linear, p)[:, p], atol=1e-9)
    differentiate(first, permute(second, p), linear, p, found, STOP)
    np.testing.assert_array_equal(found, linear[:, p])


@given(seed=seeds, size=st.integers(1, 7))
def test_edges_weigh_half_the_squares_of_both_directions(seed, size):
    a = np.random.default_rng(seed).normal(size=(size, size))
    np.testing.assert_allclose(weigh_edges(a), ((a**2).sum(0) + (a**2).sum(1)) / 2)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_one_edge_that_differs_from_its_reverse_makes_a_graph_directed(size):
    plain = np.arange(size)[:, None] * np.arange(size) + 1.0
    assert is_symmetric(plain)
    for i, j in product(range(size), repeat=2):
        other = plain.copy()
        other[i, j] += 1
        assert is_symmetric(other) == (i == j)


@pytest.mark.parametrize("directed", list(product([True, False], repeat=2)))
@pytest.mark.parametrize("extra", [0, 2])
@pytest.mark.parametrize(("threshold", "squares"), [(0.0, False), (0.0, True), (0.6, False), (0.6, True)])
def test_a_problem_has_the_terms_that_it_needs_and_no_more(directed, extra, threshold, squares):
    rng, n, m = np.random.default_rng(0), 3, 3 + extra
    a, b = (
        rng.normal(size=(size, size)) if one else np.ones((size, size)) - np.eye(size)
        for one, size in zip(directed, (n, m))
    )
    unary = rng.normal(size=(n, m))
    first, second, linear, even = state(a, b, unary, 0.7, threshold, squares)
    assert even == (2 if not threshold and (extra or squares) else 1)
    assert len(first) == len(second) == even + all(directed)
    assert first.shape[1:] == second.shape[1:] == linear.shape == ((n + m if threshold else m),) * 2
    charge = 0.7 * threshold * (((a**2).sum(0) + (a**2).sum(1))[:, None] + (b**2).sum(0) + (b**2).sum(1)) / 2
    np.testing.assert_allclose(linear[:n, :m], unary - charge)
    assert not linear[n:].any()
    assert not linear[:, m:].any()
    np.testing.assert_allclose(first[0, :n, :n], 0.7 * (a + a.T))
    np.testing.assert_allclose(second[0, :m, :m], (b + b.T) / 2)
    if even == 2:
        np.testing.assert_allclose(first[1, :n, :n], 0.7 * np.eye(n) - 0.7)
        np.testing.assert_allclose(second[1], (b**2 + b.T**2) / 2)
    if all(directed):
        np.testing.assert_allclose(first[even, :n, :n], 0.7 * (a - a.T))
        np.testing.assert_allclose(second[even, :m, :m], (b - b.T) / 2)
    assert not first[:, n:].any()
    assert not first[:, :, n:].any()
    assert not second[:, m:].any()
    assert not second[:, :, m:].any()
    without = state(a, b, np.zeros((n, 0)), 0.7, threshold, squares)[2]
    np.testing.assert_allclose(without[:n, :m], -charge)


@given(seed=seeds, size=st.integers(1, 9), whole=st.booleans())
def test_places_are_filled_in_the_order_of_their_ties_to_those_before(seed, size, whole):
    rng = np.random.default_rng(seed)
    tie = rng.integers(0, 3, (size, size)) * 1.0 if whole else rng.random((size, size))
    tie += tie.T
    order = backtracking.order_places(tie).tolist()
    assert sorted(order) == list(range(size))
    for depth, place in enumerate(order):
        rest = order[depth:]
        strongest = max((tie[order[:depth], i].sum(), tie[i].sum()) for i in rest)
        assert (tie[order[:depth], place].sum(), tie[place].sum()) == pytest.approx(strongest)


@given(seed=seeds, size=st.integers(1, 6))
def test_bounds_of_two_places_are_the_most_that_any_two_partners_give(seed, size):
    first, second, *_ = draw_problem(seed, size, 2, 1)
    ties = backtracking._tie_places(first)
    np.testing.assert_allclose(ties, 2 * np.abs(first).sum(0))
    bound = backtracking._bound_pairs(first, second)
    for i, j in product(range(size), repeat=2):
        both = [sum(first[:, i, j] * second[:, k, h]) for k, h in permutations(range(size), 2)]
        assert bound[i, j] == pytest.approx(2 * max(both) if i != j else 0)


@given(seed=seeds, size=st.integers(2, 5))
def test_what_is_hoped_for_is_no_less_than_the_best_that_can_follow(seed, size):
    first, second, linear, _ = draw_problem(seed, size, 2, 1)
    rng = np.random.default_rng(seed)
    order, partners, depth = rng.permutation(size), rng.permutation(size), int(rng.integers(1, size))
    promise, used, value = np.full((size + 1, size, size), np.nan), np.zeros(size, bool), 0.0
    promise[0] = linear
    for d in range(depth):
        value += promise[d, order[d], partners[d]]
        used[partners[d]] = True
        backtracking._foresee(first, second, promise, order, d, partners[d], used)
    placed, rest = order[:depth], order[depth:]
    free = np.flatnonzero(~used)
    for i, k in product(rest, free):
        with_placed = sum(2 * first[:, i, j] @ second[:, k, h] for j, h in zip(placed, partners))
        assert promise[depth, i, k] == pytest.approx(linear[i, k] + with_placed)
    bound = backtracking._bound_pairs(first, second)
    hope = backtracking._hope(promise, bound, order, depth, used)
    alone = sum(max(promise[depth, i, k] for k in free) for i in rest)
    assert hope == pytest.approx(alone + sum(bound[i, j] for i in rest for j in rest if i < j))
    most = -np.inf
    for others in permutations(free):
        p = np.empty(size, np.int64)
        p[placed], p[rest] = partners[:depth], others
        most = max(most, compute_objective(first, second, linear, p))
    assert value + hope >= most - 1e-9


@pytest.mark.parametrize(("gain", "taken"), [(0.0, False), (3e-10, False), (3e-9, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_backtracking_takes_no_gain_that_may_be_rounding(gain, taken, sign):
    """A permutation is given up for one that is better by more than a billionth of it."""
    none, linear = np.zeros((1, 2, 2)), sign * np.eye(2)
    linear[0, 1] = linear[1, 0] = sign + gain
    p = np.arange(2)
    backtracking.search_all(none, none, linear, p)
    assert p.tolist() == ([1, 0] if taken else [0, 1])


@pytest.mark.parametrize(("size", "share"), [(2, 1.0), (6, 1.0), (DENSE + 3, 0.05)])
def test_a_swap_brings_gradient_and_matrices_along(size, share):
    first, second, linear, _ = draw_problem(size, size, 2, 1, share)
    rng = np.random.default_rng(size)
    p, gradient = rng.permutation(size), np.empty((size, size))
    chosen = permute(second, p)
    differentiate(first, chosen, linear, p, gradient, GO_ON)
    for _ in range(20):
        r, s = rng.choice(size, 2, replace=False).tolist()
        expected = swap(p, r, s)
        exchange._swap(first, chosen, gradient, p, r, s, np.empty(size))
        assert np.array_equal(p, expected)
        assert np.array_equal(chosen, second[:, p][:, :, p])
        np.testing.assert_allclose(gradient, compute_gradient(first, second, linear, p)[:, p], atol=1e-8)


@given(seed=seeds, size=st.integers(2, 7), even=st.integers(1, 2), odd=st.integers(0, 1), needed=st.floats(-5, 5))
def test_the_swap_found_is_the_best_one_allowed_and_gains_what_it_says(seed, size, even, odd, needed):
    first, second, linear, _ = draw_problem(seed, size, even, odd)
    rng, step = np.random.default_rng(seed), 7
    p, rows, gradient = rng.permutation(size), int(rng.integers(1, size + 1)), np.empty((size, size))
    until = rng.integers(step - 1, step + 2, (size, size))
    chosen, before = permute(second, p), compute_objective(first, second, linear, p)
    differentiate(first, chosen, linear, p, gradient, GO_ON)
    found = exchange._find_swap(first, chosen, gradient, even, p, until, step, needed, rows, np.empty(size))
    best = (-1, -1, -np.inf)
    for i in range(rows):
        for j in range(i + 1, size):
            gain = compute_objective(first, second, linear, swap(p, i, j)) - before
            back = until[i, p[j]] >= step and until[j, p[i]] >= step  # both nodes have been there lately
            if gain > best[2] and (gain > needed or not back):
                best = (i, j, gain)
    assert found == pytest.approx(best)


@given(seed=seeds, size=st.integers(1, 6))
def test_rounding_is_a_share_of_the_largest_numbers_in_a_gain(seed, size):
    first, second, *_ = draw_problem(seed, size, 2, 1)
    gradient = np.random.default_rng(seed).normal(size=(size, size)) * 3
    largest = np.abs(gradient).max() + sum(4 * np.abs(f).max() * np.abs(s).max() for f, s in zip(first, second))
    assert exchange._bound_rounding(first, second, gradient) == pytest.approx(ROUNDING * largest, rel=1e-12)
    nothing = np.zeros((1, size, size))
    assert 0 < exchange._bound_rounding(nothing, nothing, nothing[0]) < 1e-200


def walk(problem, p, steps, patience, rows, seed, climb=CLIMB):
    """Robust tabu search that computes every objective anew: the best permutation met, and the steps."""
    first, second, linear, _ = problem
    size, small = len(p), 1e-9
    here = most = compute_objective(first, second, linear, p)
    best, forbidden, step, last, climbing = p, {}, 0, 0, True
    while ((step < steps and step - last < patience) or climbing) and step < steps + climb * size:
        step, climbing, options = step + 1, False, []
        for i in range(rows):
            for j in range(i + 1, size):
                there = compute_objective(first, second, linear, swap(p, i, j))
                back = min(forbidden.get((i, p[j]), 0), forbidden.get((j, p[i]), 0)) >= step
                if not back or there > most + small:
                    options.append((there, i, j))
        if not options or (step > steps and max(options)[0] <= most + small):
            continue
        here, i, j = max(options)
        seed = (1103515245 * seed + 12345) % 2**31
        forbidden[i, p[i]] = forbidden[j, p[j]] = step + 1 + size // 4 + seed // 256 % size
        p = swap(p, i, j)
        if here > most + small:
            best, most, last, climbing = p, here, step, True
    return best.tolist(), step


@settings(max_examples=15)
@given(
    seed=seeds,
    size=st.integers(2, 7),
    odd=st.integers(0, 1),
    steps=st.sampled_from([0, 3, 40]),
    patience=st.sampled_from([2, 8, 40]),
)
def test_exchange_walks_as_a_plain_tabu_search_does(seed, size, odd, steps, patience):
    problem, rng = draw_problem(seed, size, 2, odd), np.random.default_rng(seed)
    start, rows, number = rng.permutation(size), int(rng.integers(1, size + 1)), int(rng.integers(2**31))
    p = start.copy()
    made = improve(*problem, p, steps, patience, rows, number, GO_ON)
    assert (p.tolist(), made) == walk(problem, start, steps, patience, rows, number)


@pytest.mark.parametrize("climb", [0, 0.25, 0.5])
@pytest.mark.parametrize("steps", [0, 2])
def test_a_climb_ends_after_so_many_steps_for_each_row(monkeypatch, climb, steps):
    monkeypatch.setattr(exchange, "CLIMB", climb)
    problem, p = draw_problem(3, 12), np.arange(12)
    made = run_uncompiled(improve)(*problem, p, steps, 100, 12, 1, GO_ON)
    assert made == steps + 12 * climb
    assert (p.tolist(), made) == walk(problem, np.arange(12), steps, 100, 12, 1, climb)


def test_after_as_many_steps_as_rows_only_the_objective_itself_is_believed(monkeypatch):
    """A search whose objective never says that anything is better keeps what its first steps brought."""
    asked = []
    monkeypatch.setattr(exchange, "evaluate", lambda *given: asked.append(given) or -1e9)
    for seed in range(8):
        problem, start = draw_problem(seed, 6, 1, 1), np.random.default_rng(seed).permutation(6)
        p = start.copy()
        run_uncompiled(improve)(*problem, p, 40, 40, 6, seed, GO_ON)
        assert p.tolist() == walk(problem, start, 6, 40, 6, seed, climb=0)[0]
    assert asked


def test_a_search_that_is_stopped_leaves_the_permutation_as_it_is():
    problem, p = draw_problem(0, 9), np.arange(9)
    assert improve(*problem, p, 100, 100, 9, 1, STOP) == 0
    assert p.tolist() == list(range(9))


def describe_plainly(a, b):
    """Keys of nodes: degrees, in their first digits, and then what three rounds of neighbours add."""
    ties = [side + side.T / 2 for side in (a, b)]
    features, keys = [np.ones(len(a)) for _ in ties], [np.zeros(len(a)) for _ in ties]
    for depth in range(3):
        raised = [tie @ feature for tie, feature in zip(ties, features)]
        most = np.abs(raised).max(initial=0.0) or 1.0
        values = [one / most for one in raised]
        keys = [key + 10.0 ** (-4 * depth) * value for key, value in zip(keys, values)]
        features = [np.sqrt(np.abs(value) + 0.01) + value / 10 for value in values]
    return keys


@given(seed=seeds, size=st.integers(1, 8), share=st.sampled_from([0.0, 0.3, 1.0]))
def test_keys_follow_a_node_wherever_it_stands_and_have_no_unit(seed, size, share):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, size, size)) * (rng.random((2, size, size)) < share)
    keys_a, keys_b = describe_nodes(a, b)
    for found, expected in zip((keys_a, keys_b), describe_plainly(a, b)):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    p, q = rng.permutation(size), rng.permutation(size)
    moved_a, moved_b = describe_nodes(1e3 * a[np.ix_(p, p)], 1e3 * b[np.ix_(q, q)])
    np.testing.assert_allclose(moved_a, keys_a[p], atol=SAME)
    np.testing.assert_allclose(moved_b, keys_b[q], atol=SAME)


def test_keys_tell_degrees_then_neighbours_up_to_three_steps_from_a_difference():
    path = np.eye(10, k=1) + np.eye(10, k=-1)
    keys, other = describe_nodes(path, path)
    assert np.array_equal(keys, other)
    assert max(keys[[0, 9]]) < min(keys[1:9]) - 0.1  # the ends have half the degree
    gaps = np.abs(np.diff(keys[:5]))
    assert (gaps[1:3] > 10 * SAME).all()
    assert gaps[3] < SAME  # three and four from the end: no round has come so far
    arrows, _ = describe_nodes(np.eye(3, k=1), np.eye(3, k=1))
    assert min(np.diff(np.sort(arrows))) > 0.1  # out of an end, in and out, into an end


@given(seed=seeds, size=st.integers(0, 9), values=st.integers(1, 9))
def test_ranks_are_those_of_a_stable_sort(seed, size, values):
    keys = np.random.default_rng(seed).integers(0, values, size) * 1.0
    assert np.array_equal(rank(keys), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize(("apart", "alike"), [(0.0, True), (0.9 * SAME, True), (1.2 * SAME, False)])
def test_nodes_of_equal_rank_go_together_and_are_alike_up_to_rounding(apart, alike):
    for place, sign in product(range(3), (1, -1)):
        p, keys_a, keys_b = np.empty(3, np.int64), np.array([0.2, 0.0, 0.1]), np.array([0.0, 0.1, 0.2])
        keys_b[place] += sign * apart
        assert pair_by_rank(keys_a, keys_b, p) == alike
        assert p.tolist() == [2, 0, 1]


def is_kept(a, b, p):
    return np.array_equal(a, b[np.ix_(p, p)])


@given(seed=seeds, n=st.integers(1, 4), extra=st.integers(0, 2), directed=st.booleans(), hidden=st.booleans())
def test_a_map_that_keeps_all_edges_is_found_where_there_is_one(seed, n, extra, directed, hidden):
    rng, m = np.random.default_rng(seed), n + extra
    a, b = (np.triu(rng.integers(0, 2, (size, size)) * 1.0, 1) for size in (n, m))
    if directed:
        a, b = (one + np.tril(rng.integers(0, 2, one.shape), -1) for one in (a, b))
    else:
        a, b = a + a.T, b + b.T
    if hidden:
        place = rng.permutation(m)[:n]
        a = b[np.ix_(place, place)]
    p = np.empty(n, np.int64)
    exists = any(is_kept(a, b, np.array(one)) for one in permutations(range(m), n))
    assert find_isomorphism(a, b, np.zeros(n), np.zeros(m), p, 10**4, GO_ON) == exists
    if exists:
        assert len(set(p.tolist())) == n
        assert is_kept(a, b, p)


def test_a_map_keeps_keys_and_weights_up_to_rounding():
    a, p, keys = np.array([[0.0, 3.0], [5.0, 0.0]]), np.empty(2, np.int64), np.array([0.0, 0.5])
    for i, j in ((0, 1), (1, 0)):
        for share, kept in ((0.9e-9, True), (1.1e-9, False)):  # of the sum of both directions
            for sign in (1, -1):
                b = a.copy()
                b[i, j] += sign * share * 8
                assert find_isomorphism(a, b, keys, keys, p, 100, GO_ON) == kept
    for share, kept in ((0.9, True), (1.1, False)):
        other = keys + np.array([0, share * SAME])
        assert find_isomorphism(a, a, keys, other, p, 100, GO_ON) == kept
        assert find_isomorphism(a, a, other, keys, p, 100, GO_ON) == kept


@pytest.mark.parametrize("size", [1, 4])
def test_a_map_is_looked_for_in_so_many_steps(size):
    """Without edges every step places a node; among equals that differ in the last pair, all are tried."""
    none, p, keys = np.zeros((size, size)), np.empty(size, np.int64), np.zeros(size)
    assert find_isomorphism(none, none, keys, keys, p, size, GO_ON)
    assert p.tolist() == list(range(size))
    assert not find_isomorphism(none, none, keys, keys, p, size - 1, GO_ON)
    assert not find_isomorphism(none, none, keys, keys, p, size, STOP)
    assert find_isomorphism(none, np.zeros((size + 1, size + 1)), keys, np.zeros(size + 1), p, size, GO_ON)
