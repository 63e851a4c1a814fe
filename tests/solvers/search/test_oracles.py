"""Each function of the search beside another that computes the same from its definition, however slowly."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadmatch.solvers.compilation import run_uncompiled
from quadmatch.solvers.search import backtracking, exchange, stages, strategy
from quadmatch.solvers.search.exchange import CLIMB, ROUNDING, improve
from quadmatch.solvers.search.isomorphism import SAME, describe_nodes, find_isomorphism, pair_by_rank, rank
from quadmatch.solvers.search.pairs import Pairs, lay_end_to_end, read_pair
from quadmatch.solvers.search.problem import DENSE, differentiate, evaluate, is_symmetric, permute, state, weigh_edges
from quadmatch.solvers.search.pruning import prune
from quadmatch.solvers.search.stages import (
    enumerate_all,
    explore,
    explore_partial,
    relax_all,
    start_alike,
    start_inside,
    start_linear,
)
from quadmatch.solvers.search.units import Units, find_exponents, find_peaks, scale_matrices, scale_pairs

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
    first = first if share == 1 else np.sign(first) / 2  # twice this is one, which is not zero
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
    first = first if share == 1 else np.sign(first)
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
    first, second = first * 1e-3, second * 1e-3
    largest = np.abs(gradient).max() + sum(4 * np.abs(f).max() * np.abs(s).max() for f, s in zip(first, second))
    assert exchange._bound_rounding(first, second, gradient) == pytest.approx(ROUNDING * largest, rel=1e-12, abs=0)
    nothing = np.zeros((1, size, size))
    assert 0 < exchange._bound_rounding(nothing, nothing, nothing[0]) < 1e-200


def walk(problem, p, steps, patience, rows, seed, climb=CLIMB, moves=None):
    """Robust tabu search that computes every objective anew: the best permutation met, and the steps.

    A list of `moves` hears which rows are swapped.
    """
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
        if moves is not None:
            moves.append((i, j))
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


@pytest.mark.parametrize(("steps", "patience", "rows"), [(40, 40, 8), (40, 9, 8), (25, 40, 4), (3, 9, 8), (30, 30, 1)])
def test_every_swap_of_a_walk_is_that_of_a_plain_tabu_search(monkeypatch, steps, patience, rows):
    made, plain = [], exchange._swap
    monkeypatch.setattr(exchange, "_swap", lambda *given: made.append(given[4:6]) or plain(*given))
    for seed in range(5):
        problem, start, moves = draw_problem(seed, 8, 1, 1), np.random.default_rng(seed).permutation(8), []
        p = start.copy()
        count = run_uncompiled(improve)(*problem, p, steps, patience, rows, 5 + 10**6 * seed, GO_ON)
        assert (p.tolist(), count) == walk(problem, start, steps, patience, rows, 5 + 10**6 * seed, moves=moves)
        assert made == moves
        made.clear()


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


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("extra", [0, 1])
def test_a_map_that_keeps_all_edges_is_found_where_there_is_one(n, extra, directed):
    maps, m = 0, n + extra
    for seed in range(60):
        rng = np.random.default_rng(seed)
        a, b = (np.triu(rng.random((size, size)) < 0.3, 1) * 1.0 for size in (n, m))
        if directed:
            a, b = (one + np.tril(rng.random(one.shape) < 0.2, -1) for one in (a, b))
        else:
            a, b = a + a.T, b + b.T
        if seed % 3 == 0:
            place = rng.permutation(m)[:n]
            a = b[np.ix_(place, place)]
        p = np.empty(n, np.int64)
        exists = any(is_kept(a, b, np.array(one)) for one in permutations(range(m), n))
        assert find_isomorphism(a, b, np.zeros(n), np.zeros(m), p, 10**4, GO_ON) == exists
        if exists:
            assert len(set(p.tolist())) == n
            assert is_kept(a, b, p)
        maps += exists
    assert 20 <= maps < 60 or n == 1


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


def draw_pairs(seed, sizes, *, known=True):
    """Pairs of weighted, directed graphs with a weight of their own each, and the matrices of each pair."""
    rng = np.random.default_rng(seed)
    drawn = [
        (*(rng.normal(size=(size, size)) * (1 - np.eye(size)) for size in (n, m)), rng.normal(size=(n, m)))
        for n, m in sizes
    ]
    a, b, linears = zip(*drawn)
    pairs = lay_end_to_end(a, b, linears if known else None)
    pairs.weights[:] = rng.uniform(0.3, 0.9, len(sizes))
    return pairs, drawn


def draw_orders(seed, sizes):
    rng = np.random.default_rng(seed)
    return [rng.permutation(m) for _, m in sizes]


def test_a_start_of_equals_is_an_isomorphism_or_a_ranking_of_those_chosen():
    rng, (a, b) = np.random.default_rng(0), np.random.default_rng(1).random((2, 4, 4))
    order = rng.permutation(4)
    pairs = lay_end_to_end([a, a[np.ix_(order, order)], b], [b, a, b[np.ix_(order, order)]])
    permuted, alike, exact = np.full(12, -1), np.zeros(3, bool), np.zeros(3, bool)
    start_alike(pairs, np.array([0, 1]), permuted, alike, exact)
    assert alike.tolist() == exact.tolist() == [False, True, False]
    ranks = [np.argsort(key) for key in describe_plainly(a, b)]
    assert permuted[ranks[0]].tolist() == ranks[1].tolist()
    assert permuted[4:8].tolist() == order.tolist()
    assert (permuted[8:] == -1).all()


@pytest.mark.parametrize("found", [True, False])
def test_a_ranking_is_kept_where_no_isomorphism_is_found_in_time(monkeypatch, found):
    """All nodes of a circle look alike; a map of it is believed only if the search for one says so."""
    limits = []

    def look(a, b, keys_a, keys_b, p, limit, stop):
        p[:] = np.arange(5)[::-1]
        limits.append(limit)
        return found

    monkeypatch.setattr(stages, "find_isomorphism", look)
    circle = np.roll(np.eye(5), 1, 0) + np.roll(np.eye(5), -1, 0)
    permuted, alike, exact = np.full(5, -1), np.zeros(1, bool), np.zeros(1, bool)
    run_uncompiled(start_alike)(lay_end_to_end([circle], [circle]), np.array([0]), permuted, alike, exact)
    assert (alike[0], exact[0], limits) == (True, found, [1100])
    assert permuted.tolist() == (list(range(5))[::-1] if found else list(range(5)))


def test_a_part_is_looked_for_in_a_whole_and_the_rest_follows(monkeypatch):
    whole = np.random.default_rng(0).random((5, 5)) * (1 - np.eye(5))
    place = np.array([3, 0, 4])
    part = whole[np.ix_(place, place)]
    pairs = lay_end_to_end([part + 1 - np.eye(3), part], [whole, whole])
    permuted, exact = np.full(10, -1), np.zeros(2, bool)
    start_inside(pairs, np.array([0, 1]), permuted, exact)
    assert exact.tolist() == [False, True]
    assert permuted.tolist() == [-1] * 5 + [3, 0, 4, 1, 2]
    limits = []
    monkeypatch.setattr(stages, "find_isomorphism", lambda *given: bool(limits.append(given[5])))
    for m in (5, 100):
        pairs = lay_end_to_end([part], [np.zeros((m, m))])
        run_uncompiled(start_inside)(pairs, np.array([0]), np.zeros(m, np.int64), np.zeros(1, bool))
    assert limits == [20 + 16000, 400 + 40]


SIZES = [(3, 5), (2, 2), (4, 4), (3, 4)]


@pytest.mark.parametrize("known", [True, False])
def test_stages_change_the_pairs_that_are_chosen_and_no_others(known):
    pairs, drawn = draw_pairs(2, SIZES, known=known)
    orders, chosen, at = draw_orders(3, SIZES), [0, 2, 3], pairs.starts[:, 3]
    begun = np.concatenate(orders)
    for stage in ("linear", "explore", "enumerate"):
        permuted, taken, steps = begun.copy(), np.arange(4), np.array([9, 9, 0, 4])
        if stage == "linear":
            start_linear(pairs, np.array(chosen), permuted)
        elif stage == "explore":
            explore(pairs, np.array(chosen), permuted, steps, taken)
        else:
            enumerate_all(pairs, np.array(chosen), permuted)
        assert permuted[at[1] : at[2]].tolist() == orders[1].tolist()
        for index in chosen:
            (n, m), (a, b, unary) = SIZES[index], drawn[index]
            found = permuted[at[index] :][:m].tolist()
            problem = state(a, b, unary if known else np.zeros((n, 0)), pairs.weights[index], 0.0, False)
            worth = {p: compute_objective(*problem[:3], np.array(p)) for p in permutations(range(m))}
            if stage == "linear":
                middle = problem[2] + sum(2 / m * np.outer(f.sum(1), s.sum(1)) for f, s in zip(*problem[:2]))
                most = max(middle[range(m), p].sum() for p in worth)
                assert middle[range(m), found].sum() == pytest.approx(most)
            elif stage == "explore":
                limit = int(steps[index])
                expected, made = walk(problem, orders[index], limit, limit, n, m)
                assert (found[:n], taken[index] - index) == (expected[:n], made)
            else:
                assert worth[tuple(found)] == pytest.approx(max(worth.values()))
        assert taken[1] == 1


@pytest.mark.parametrize("stage", [start_linear, enumerate_all])
def test_a_stage_that_is_stopped_does_nothing(stage):
    pairs, _ = draw_pairs(2, SIZES)
    pairs.stop[0], permuted = 1, np.full(15, -1)
    stage(pairs, np.arange(4), permuted)
    assert (permuted == -1).all()


@pytest.mark.parametrize("rounds", [0, 2, 12])
def test_a_partial_match_is_a_walk_from_the_full_one_or_nothing(rounds):
    sizes = [(3, 4), (2, 2), (1, 3), (2, 3)]
    nothing, best = 0, 0
    for seed in range(8):
        pairs, drawn = draw_pairs(seed, sizes)
        orders, taken, chosen = draw_orders(seed, sizes), np.zeros(4, np.int64), np.array([0, 2, 3])
        permuted = np.concatenate(orders)
        explore_partial(pairs, chosen, permuted, 0.6, rounds, taken)
        assert permuted[4:6].tolist() == orders[1].tolist()
        for index in chosen:
            (n, m), (a, b, unary) = sizes[index], drawn[index]
            problem = state(a, b, unary, pairs.weights[index], 0.6, False)
            start = np.concatenate((np.arange(m, m + n), np.arange(m)))
            for i in range(n):
                start = swap(start, i, n + orders[index][i])
            p, made = walk(problem, start, rounds * (n + m), rounds * (n + m), n + m, n + m)
            worth = compute_objective(*problem[:3], np.array(p))
            expected = [k if k < m and worth > 0 else m for k in p[:n]]
            found = permuted[pairs.starts[index, 3] :][:n].tolist()
            assert (found, taken[index]) == (expected, made)
            nothing += worth <= 0
            best += worth > 0
    assert nothing
    assert best


def test_a_relaxation_is_filled_up_with_the_targets_that_are_left(monkeypatch):
    asked = []

    def record(a, b, linear, weight, temperature, led, deadline):
        asked.append((len(a), linear is None, weight, temperature, led, deadline))
        return np.arange(len(b) - 1, len(b) - 1 - len(a), -1), 7

    monkeypatch.setattr(stages, "relax_pair", record)
    for known in (True, False):
        pairs, _ = draw_pairs(0, SIZES, known=known)
        permuted, taken, led = np.full(15, -1), np.arange(4), np.array([False, False, False, True])
        relax_all(pairs, np.array([0, 3]), permuted, 0.25, led, taken, 99.0)
        assert permuted.tolist() == [4, 3, 2, 0, 1] + [-1] * 6 + [3, 2, 1, 0]
        assert taken.tolist() == [7, 1, 2, 10]
        assert asked == [(3, not known, pairs.weights[i], 0.25, bool(led[i]), 99.0) for i in (0, 3)]
        asked.clear()


TABLE = [
    *((0, 5), (0, 0), (3, 3), (3, 5), (6, 6), (5, 6), (7, 7), (10, 10), (9, 10), (11, 11), (20, 20), (19, 20)),
    *((21, 21), (20, 21), (300, 300), (299, 300), (301, 301), (300, 301), (1500, 1500), (1501, 1501), (9, 1501)),
]
"""Sizes of pairs on both sides of every limit."""


def make_sizes_only(known):
    """Pairs of which only the sizes are there."""
    sizes = np.array(TABLE)
    none = np.zeros(0)
    return Pairs(
        sizes, np.zeros((len(sizes), 4), np.int64), none, none, np.ones(int(known)), np.ones(len(sizes)), GO_ON.copy()
    )


@pytest.mark.parametrize("quality", ["fast", "standard", "best"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("mapped", [True, False])
def test_every_pair_gets_the_stages_that_are_written_down_for_its_size(monkeypatch, quality, known, mapped):
    """As in docs/match-graphs.md; pairs of an even number of targets look alike, and are `mapped` or not."""
    pairs, ran = make_sizes_only(known), {}
    n, m = np.array(TABLE).T

    def run(stage, flags, pairs, *rest, best=False):
        name = run_uncompiled(stage).__name__
        ran[name] = flags.copy()
        if name == "start_alike":
            rest[1][flags & (m % 2 == 0)] = True
            rest[2][flags & (m % 2 == 0)] = mapped
        if name == "start_inside":
            rest[1][flags & (m % 2 == 0)] = mapped

    def widen(pairs, flags, steps, once, *rest):
        ran.update(widen=flags.copy(), once=once.copy())

    monkeypatch.setattr(strategy, "_run", run)
    monkeypatch.setattr(strategy, "_widen", widen)
    found = strategy.Found.begin(pairs)
    strategy._match_all(pairs, quality, found, np.inf, lambda text: None)
    ranked, inside = (n == m) & (n > 0) & (not known), (n < m) & (n > 0) & (m <= 300) & (not known)
    exact = (n == 0) | ((ranked | inside) & (m % 2 == 0) & mapped)
    relaxed = (m > 20) | (ranked & (m % 2 == 0)) | (quality == "best")
    expected = {
        "start_alike": ranked,
        "start_inside": inside,
        "start_linear": ~exact & (m <= 300) & ~ranked,
        "explore": ~exact & (m <= 300),
        "widen": ~exact & ((m > 300) | (relaxed & (quality != "fast"))),
        "once": (m > {"fast": 300, "standard": 1500, "best": 10**9}[quality]),
        "enumerate_all": ~exact & (m <= (10 if quality == "best" else 6)),
    }
    for name, flags in expected.items():
        assert ran[name].tolist() == flags.tolist(), name
    assert found.converged.tolist() == exact.tolist()


def test_exchanges_are_as_many_as_the_size_and_the_quality_say():
    n, m = np.array(TABLE).T
    for best in (True, False):
        steps = strategy._allow_steps(n, m, best)
        for small, large, found in zip(n, m, steps):
            rounds = 100 if best else 5 if small < large <= 20 else 0.75
            assert found == (0 if large > 300 else int(rounds * large))


@pytest.mark.parametrize(("stop", "large"), [(0, 3), (0, 9), (1, 9)])
def test_partial_matches_of_large_graphs_or_out_of_time_are_only_pruned(monkeypatch, stop, large):
    ran = []
    monkeypatch.setattr(strategy, "LARGE", large)
    monkeypatch.setattr(strategy, "_run", lambda stage, flags, pairs, *rest, best: ran.append((flags, rest[2], best)))
    sizes = [(2, 3), (0, 4), (3, 4), (3, 3)]
    for quality, rounds in (("best", 100), ("standard", 3)):
        pairs, drawn = draw_pairs(1, sizes)
        pairs.stop[0] = stop
        found = strategy.Found.begin(pairs)
        assert found.permutations.tolist() == [0, 1, 2, *range(4), *range(4), 0, 1, 2]
        found.permutations[11:] = [2, 0, 1]
        before = found.permutations.copy()
        strategy._leave_alone(pairs, 0.6, quality, found)
        only = [stop == 1 or m > large for _, m in sizes]
        flags, made, best = ran.pop()
        assert flags.tolist() == [n > 0 and not one for (n, _), one in zip(sizes, only)]
        assert (made, best) == (rounds, quality == "best")
        for index, (n, m) in enumerate(sizes):
            at, (a, b, unary) = pairs.starts[index, 3], drawn[index]
            expected = before[at : at + m].copy()
            if only[index] and n:
                expected[:n] = prune(a, b, unary, pairs.weights[index], 0.6, expected[:n])
            assert found.permutations[at : at + m].tolist() == expected.tolist()


@pytest.mark.parametrize("best", [True, False])
@pytest.mark.parametrize("more", [True, False])
def test_a_stage_is_compiled_for_small_pairs_and_hears_ctrl_c_where_it_is_long(monkeypatch, best, more):
    """One pair of twenty nodes and one of twenty-one take 20³ and 21³, a hundred times as long at the best quality."""
    calls = []

    def stage():
        """A loop as if compiled."""

    stage.py_func = lambda: None
    monkeypatch.setattr(strategy, "LONG", 20**3 * (100 if best else 1) - more)
    monkeypatch.setattr(
        strategy, "call_stoppably", lambda loop, stop, pairs, chosen, *rest, long: calls.append((loop, *chosen, long))
    )
    pairs, flags = make_sizes_only(False), np.zeros(len(TABLE), bool)
    strategy._run(stage, flags, pairs, best=best)
    assert not calls
    flags[[TABLE.index((19, 20)), TABLE.index((20, 21))]] = True
    strategy._run(stage, flags, pairs, best=best)
    assert calls == [(stage, TABLE.index((19, 20)), more), (stage.py_func, TABLE.index((20, 21)), True)]
    calls.clear()
    pairs.stop[0] = 1
    strategy._run(stage, flags, pairs, best=best)
    assert not calls


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("stop", [0, 1])
def test_of_all_relaxations_the_best_is_kept_and_the_match_before_them(monkeypatch, known, stop):
    """Pairs above four nodes are large here; those of six are not polished, and the last one is tried once."""
    sizes = [(3, 4), (4, 4), (2, 3), (5, 5), (4, 6), (3, 4)]
    monkeypatch.setattr(strategy, "LARGE", 4)
    monkeypatch.setattr(strategy, "POLISHED", 5)
    pairs, drawn = draw_pairs(5, sizes, known=known)
    pairs.stop[0] = stop
    large, at = np.array([m for _, m in sizes]), pairs.starts[:, 3]
    flags, once = np.array([True, True, False, True, True, True]), np.arange(6) == 5
    trials = {temperature: draw_orders(k + 7, sizes) for k, temperature in enumerate(strategy.TEMPERATURES)}
    relaxed, polished, said = [], [], []

    def relax(pairs, chosen, permuted, temperature, led, taken, deadline):
        relaxed.append((temperature, chosen.tolist()))
        assert led.tolist() == ((large > 4) & known).tolist()
        for index in chosen:
            permuted[at[index] :][: large[index]] = trials[temperature][index]

    monkeypatch.setattr(strategy, "relax_all", relax)
    monkeypatch.setattr(
        strategy, "_run", lambda stage, flags, *rest, best: polished.append(np.flatnonzero(flags).tolist())
    )
    found = strategy.Found.begin(pairs)
    strategy._widen(pairs, flags, np.zeros(6, np.int64), once, found, np.inf, said.append, False)
    first = [3, 4] if stop else [0, 1, 3, 4, 5]
    later = [] if stop else [0, 1] if known else [0, 1, 3, 4]
    expected = [(strategy.TEMPERATURES[0], first), *((one, later) for one in strategy.TEMPERATURES[1:])]
    assert relaxed == expected
    assert polished == [[index for index in chosen if index != 4] for _, chosen in expected]
    assert said[::2] == [f"relaxing {len(chosen)} of 6 pairs at temperature {one}" for one, chosen in expected]
    for index, (n, m) in enumerate(sizes):
        a, b, unary = drawn[index]
        tried = [trials[one][index] for one, chosen in expected if index in chosen]
        candidates = [*([np.arange(m)] if m <= 4 or not flags[index] else []), *tried]

        def measure(p, a=a, b=b, unary=unary * known, n=n, weight=pairs.weights[index]):
            kept = p[:n]
            return weight * ((a - b[np.ix_(kept, kept)]) ** 2).sum() - unary[np.arange(n), kept].sum()

        assert found.permutations[at[index] :][:m].tolist() == min(candidates, key=measure).tolist()


def test_a_power_of_two_is_taken_from_numbers_that_are_not_usual():
    peaks = [0.0, 1.0, 2.0**10, 2047.0, 2.0**11, 3 * 2.0**11, 2.0**-10, 2.0**-10 * 0.99, 2.0**-11, 2.0**-1074, np.inf]
    expected = [0, 0, 0, 0, 11, 12, 0, -11, -11, -1074]
    assert find_exponents(np.array(peaks[:-1])).tolist() == expected


def test_peaks_are_the_largest_sizes_of_each_matrix():
    rng, sizes = np.random.default_rng(0), [(2, 3), (0, 2), (0, 0), (3, 3), (1, 1)]
    a, b = ([rng.normal(size=(size, size)) for size in side] for side in zip(*sizes))
    linears = [rng.normal(size=one) for one in sizes]
    for known in (True, False):
        peaks = find_peaks(lay_end_to_end(a, b, linears if known else None))
        for found, matrices in zip(peaks, (a, b, linears)):
            expected = [np.abs(one).max(initial=0.0) for one in matrices]
            assert found.tolist() == (expected if known or matrices is not linears else [0.0] * 5)


@pytest.mark.parametrize("together", [True, False])
def test_scaled_pairs_are_divided_by_powers_of_their_own_or_in_one_ratio(together):
    powers = [(0, 0), (30, 0), (-30, 0), (30, 31), (30, 100), (-30, -100), (-30, -15), (0, 15), (0, -15), (None, 21)]
    powers += [(None, -21), (25, None), (None, None), (12, 23), (3, 9)]
    edge, likeness = ([0.0 if one is None else 1.5 * 2.0**one for one in side] for side in zip(*powers))
    ring = np.ones((2, 2)) - np.eye(2)
    a, b = [one * ring / 4 for one in edge], [-one * ring for one in edge]
    linears = [one * np.eye(2) for one in likeness]
    pairs = lay_end_to_end(a, b, linears)
    units = scale_pairs(pairs, find_peaks(pairs), together)
    for index in range(len(powers)):
        divided, divided_linear = 2.0 ** units.edges[index], 2.0 ** units.linears[index]
        found = read_pair(pairs, index)
        for one, expected in zip(found, (a[index] / divided, b[index] / divided, linears[index] / divided_linear)):
            np.testing.assert_array_equal(one, expected)
        if together:
            assert divided_linear == divided**2
        else:
            assert units.edges[index] == (powers[index][0] or 0) * (abs(powers[index][0] or 0) > 10)
            assert units.linears[index] == (powers[index][1] or 0) * (abs(powers[index][1] or 0) > 10)
    alone = lay_end_to_end(a, b)
    expected = [one if one is not None and abs(one) > 10 else 0 for one, _ in powers]
    assert scale_pairs(alone, find_peaks(alone), together).edges.tolist() == expected


@pytest.mark.parametrize(
    ("power", "linear_power", "edges"),
    [(30, 0, 30), (30, 61, 31), (30, 60, 30), (0, 15, 8), (0, 16, 8), (0, -15, 0), (-30, -15, -7), (-30, -100, -30)],
)
def test_edges_and_similarities_are_divided_together_by_what_the_larger_asks_for(power, linear_power, edges):
    ring = np.ones((2, 2)) - np.eye(2)
    pairs = lay_end_to_end([2.0**power * ring], [0 * ring], [2.0**linear_power * ring])
    units = scale_pairs(pairs, find_peaks(pairs), True)
    assert (units.edges.tolist(), units.linears.tolist()) == ([edges], [2 * edges])


@given(seed=seeds)
def test_objectives_are_restored_to_the_units_of_the_caller(seed):
    rng = np.random.default_rng(seed)
    pairs, _ = draw_pairs(0, SIZES)
    units = Units(rng.integers(-20, 20, 4), rng.integers(-20, 20, 4))
    edge, likeness, weight = 4.0**units.edges, 2.0**units.linears, pairs.weights
    ratio = weight / (1 - weight) * likeness / edge
    differences, similarities = rng.random((2, 4))
    scaled = weight * differences - (1 - weight) * similarities
    expected = (ratio * edge * differences - likeness * similarities) / (1 + ratio)
    np.testing.assert_allclose(units.restore(pairs) * scaled, expected, rtol=1e-9)
    without, _ = draw_pairs(0, SIZES, known=False)
    np.testing.assert_array_equal(units.restore(without), edge)


def test_matrices_are_scaled_each_by_its_own_power_unless_whole_or_usual():
    plain = np.array([[1.0, -3.0], [0.5, 0.0]])
    whole = np.array([[2**40, 0], [0, 1]])
    given = [plain, plain * 2.0**40, -plain * 2.0**-300, whole, np.zeros((0, 0))]
    found = scale_matrices(given)
    assert found[0] is plain
    assert found[3] is whole
    np.testing.assert_array_equal(found[1], plain / 2)
    np.testing.assert_array_equal(found[2], -plain / 2)


@pytest.mark.parametrize("stop", [0, 1])
def test_a_search_has_converged_where_nothing_is_left_or_time_was_enough(stop):
    pairs, _ = draw_pairs(0, [(0, 2), (3, 4)], known=False)
    pairs.stop[0] = stop
    assert strategy.search(pairs, 0.0, "fast").converged.tolist() == [True, not stop]
