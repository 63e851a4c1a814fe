import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadmatch.solvers.search.backtracking import search_all
from quadmatch.solvers.search.exchange import improve
from quadmatch.solvers.search.local_search import FEW, Assignment, exchange_pairs, local_search
from quadmatch.solvers.search.population import Population, cross, evolve
from quadmatch.solvers.search.problem import evaluate, permute

KINDS = ["symmetric", "one symmetric", "asymmetric", "diagonal", "integer", "sparse", "zero"]


def make_matrices(kind: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    source, target, linear = rng.normal(size=(3, n, n))
    if kind in ("integer", "sparse"):
        source, target, linear = rng.integers(-9, 9, (3, n, n)).astype(float)
    if kind == "sparse":
        source *= rng.random((n, n)) < 0.2
    if kind == "zero":
        source *= 0
    if kind in ("symmetric", "one symmetric", "integer"):
        source += source.T
    if kind == "symmetric":
        target += target.T
    if kind not in ("diagonal", "integer"):
        np.fill_diagonal(source, 0)
    return source, target, linear


def cost_of(source, target, linear, permutation) -> float:
    arranged = target[permutation][:, permutation]
    return float((source * arranged).sum() + linear[np.arange(len(source)), permutation].sum())


@given(st.sampled_from(KINDS), st.integers(2, 35), st.integers(0, 999))
def test_the_loops_problem_is_the_assignment_turned_around(kind, n, seed):
    source, target, linear = make_matrices(kind, n, seed)
    first, second, constant, _ = Assignment.scale_down(source, target, linear).state()
    permutations = [np.random.default_rng(seed + k).permutation(n) for k in range(3)]
    costs = np.array([cost_of(source, target, linear, p) for p in permutations])
    ours = np.array([-evaluate(first, permute(second, p), constant, p) for p in permutations])
    exponents = np.round(np.log2(np.abs(costs).sum() / np.abs(ours).sum())) if costs.any() else 0
    assert ours * 2.0**exponents == pytest.approx(costs, abs=1e-9 * (1 + np.abs(costs).sum()))


@given(st.sampled_from(KINDS), st.integers(2, 6), st.integers(0, 999))
def test_few_nodes_get_the_optimum(kind, n, seed):
    source, target, linear = make_matrices(kind, n, seed)
    found = local_search(source, target, linear=linear).permutation
    best = min(cost_of(source, target, linear, np.array(p)) for p in itertools.permutations(range(n)))
    assert cost_of(source, target, linear, found) == pytest.approx(best)


@given(st.sampled_from(KINDS), st.integers(2, 8), st.integers(0, 99))
@settings(max_examples=20)
def test_search_finds_what_backtracking_proves(kind, n, seed):
    assignment = Assignment.scale_down(*make_matrices(kind, n, seed))
    problem, optimum = assignment.state(), np.arange(n)
    search_all(*problem[:3], optimum)
    first, second, linear, _ = problem
    largest = evaluate(first, permute(second, optimum), linear, optimum)
    population, rng = Population(8, []), np.random.default_rng(seed)
    evolve(problem, population, 20_000, np.inf, assignment.tolerance, np.zeros(1, np.int64), rng)
    assert population.largest == pytest.approx(largest, abs=1e-9)
    best = population.best
    assert evaluate(first, permute(second, best), linear, best) == population.largest
    assert -assignment.compute_bound() >= largest - 1e-9


@given(st.sampled_from(KINDS), st.integers(8, 30), st.integers(0, 999), st.integers(0, 4))
def test_result_is_a_permutation_no_worse_than_any_start(kind, n, seed, starts):
    source, target, linear = make_matrices(kind, n, seed)
    rng = np.random.default_rng(seed)
    given = [rng.permutation(n) for _ in range(starts)]
    found = local_search(source, target, given, linear=linear, starts=2, steps=30, rng=rng).permutation
    assert sorted(found) == list(range(n))
    for start in given:
        before = cost_of(source, target, linear, start)
        assert cost_of(source, target, linear, found) <= before + 1e-9
        better = exchange_pairs(source, target, start, linear=linear).permutation
        assert cost_of(source, target, linear, better) <= before + 1e-9


@given(st.sampled_from(KINDS), st.integers(2, 20), st.integers(0, 999))
def test_descent_ends_where_no_exchange_helps(kind, n, seed):
    source, target, linear = make_matrices(kind, n, seed)
    found = exchange_pairs(source, target, np.arange(n), linear=linear).permutation
    reached = cost_of(source, target, linear, found)
    for u, v in itertools.combinations(range(n), 2):
        other = found.copy()
        other[[u, v]] = other[[v, u]]
        assert cost_of(source, target, linear, other) >= reached - 1e-9


@given(st.integers(2, 30), st.integers(0, 999))
def test_children_keep_what_parents_agree_on(n, seed):
    rng = np.random.default_rng(seed)
    mother, child = rng.permutation(n), np.empty(n, np.int64)
    father, rest = mother.copy(), rng.choice(n, n - n // 2, replace=False)
    father[rest] = father[rng.permutation(rest)]
    distance = cross(mother, father, rng.random(n), rng.permutation(n), child)
    assert sorted(child) == list(range(n))
    same = mother == father
    assert (child[same] == mother[same]).all()
    assert distance == min((child != mother).sum(), (child != father).sum())


def test_the_same_seed_walks_the_same_way_and_leaves_a_local_optimum():
    problem = Assignment.scale_down(*make_matrices("integer", 20, 3)).state()
    local, stop = np.arange(20), np.zeros(1, np.int64)
    first, second, linear, _ = problem
    improve(*problem, local, 0, 0, 20, 1, stop)
    walks = []
    for _ in range(2):
        p = local.copy()
        walks.append((improve(*problem, p, 5000, 5000, 20, 1, stop), *p))
    assert walks[0] == walks[1]
    assert walks[0][0] >= 5000
    assert evaluate(first, permute(second, p), linear, p) > evaluate(first, permute(second, local), linear, local)
    steps = improve(*problem, local.copy(), 5000, 20, 20, 1, stop)
    assert 20 <= steps < 5000


def test_search_ends_at_a_proven_optimum_or_on_agreement():
    rng = np.random.default_rng(0)
    graph = np.triu(rng.random((30, 30)) < 0.3, 1).astype(float)
    graph += graph.T
    order = rng.permutation(30)
    moved = graph[order][:, order]
    proven = local_search(-graph, moved, [np.argsort(order)], starts=1000, steps=10**6)
    assert proven.steps < 1000
    easy = make_matrices("integer", 10, 0)
    agreed = local_search(easy[0], easy[1], linear=easy[2], starts=1000, steps=10**6, rng=rng)
    assert agreed.steps < 10**6


def test_scale_does_not_matter():
    source, target, linear = make_matrices("integer", 15, 5)
    plain = local_search(source, target, linear=linear, rng=np.random.default_rng(0))
    for left, right in ((2.0**60, 2.0**-200), (2.0**-300, 2.0**-300), (2.0**400, 2.0**400)):
        scaled = local_search(source * left, target * right, linear=linear * left * right, rng=np.random.default_rng(0))
        if left * right > 1e-200:
            assert (scaled.permutation == plain.permutation).all()
    large = local_search(source * 1e-300, target, linear=linear * 1e10, rng=np.random.default_rng(0))
    from scipy.optimize import linear_sum_assignment

    assert linear[np.arange(15), large.permutation].sum() == linear[linear_sum_assignment(linear)].sum()


def test_deadline_stops_a_search_that_would_take_hours():
    source, target, _ = make_matrices("asymmetric", 40, 0)
    local_search(source, target, starts=1, steps=1)
    begun, spent = time.perf_counter(), time.process_time()
    found = local_search(source, target, starts=10**6, steps=10**6, deadline=begun + 0.2)
    assert time.process_time() - spent < 30
    assert sorted(found.permutation) == list(range(40))
    assert found.steps > 0
    passed = local_search(source, target, starts=10**6, steps=10**6, deadline=begun)
    assert sorted(passed.permutation) == list(range(40))


@given(st.integers(1, 5), st.integers(-40, 40), st.integers(-40, 40), st.integers(-40, 40), st.integers(0, 999))
def test_scaling_down_is_by_one_power_of_two_that_leaves_no_entry_above_one(n, own, other, all_linear, seed):
    source, target, linear = np.random.default_rng(seed).normal(size=(3, n, n))
    source, target, linear = source * 2.0**own, target * 2.0**other, linear * 2.0**all_linear
    scaled = Assignment.scale_down(source, target, linear)
    parts = (scaled.source, scaled.target, scaled.linear)
    assert max(np.abs(one).max() for one in parts) < 1
    assert np.abs(scaled.target).max() >= 0.5
    assert max(np.abs(scaled.source).max(), np.abs(scaled.linear).max()) >= 0.5
    power = scaled.linear[0, 0] / linear[0, 0]
    assert np.frexp(power)[0] == 0.5
    np.testing.assert_array_equal(scaled.linear, linear * power)
    np.testing.assert_array_equal(scaled.source[0, 0] * scaled.target, source[0, 0] * target * power)
    without = Assignment.scale_down(source, target)
    assert not without.linear.any()
    assert max(np.abs(one).max() for one in (without.source, without.target)) < 1


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_difference_counts_beyond_the_rounding_of_the_sums(n):
    ones = np.ones((n, n))
    assert Assignment(2 * ones, -3 * ones, -5 * ones).tolerance == pytest.approx(1e-14 * (6 * n**3 + 5 * n**2), abs=0)
    assert Assignment(0 * ones, ones, 0 * ones).tolerance == 0


@given(st.sampled_from(KINDS), st.integers(1, 5), st.integers(0, 999))
def test_the_bound_is_the_best_assignment_of_rows_to_rows(kind, n, seed):
    """Each row of one matrix, on its own, meets a row of the other in the best of all orders."""
    source, target, linear = make_matrices(kind, n, seed)
    least = np.empty((n, n))
    for i, k in itertools.product(range(n), repeat=2):
        own, other = np.delete(source[i], i), np.delete(target[k], k)
        orders = itertools.permutations(other)
        least[i, k] = source[i, i] * target[k, k] + linear[i, k] + min(own @ np.array(order) for order in orders)
    bound = Assignment(source, target, linear).compute_bound()
    rows = np.arange(n)
    assert bound == pytest.approx(min(least[rows, list(p)].sum() for p in itertools.permutations(range(n))))
    if n <= 2:
        best = min(cost_of(source, target, linear, np.array(p)) for p in itertools.permutations(range(n)))
        assert bound == pytest.approx(best)


@pytest.mark.parametrize(
    ("starts", "given", "size", "budget"), [(3, 0, 3, 30), (3, 5, 5, 50), (40, 0, 16, 400), (40, 20, 20, 400)]
)
def test_starts_fill_a_population_and_are_worth_their_steps(monkeypatch, starts, given, size, budget):
    asked = []

    def record(problem, population, steps, goal, tolerance, stop, rng):
        asked.append((population.size, len(population.given), steps, goal, tolerance))
        population.best = np.arange(9)
        return 77

    monkeypatch.setattr("quadmatch.solvers.search.local_search.evolve", record)
    matrices = make_matrices("asymmetric", 9, 0)
    found = local_search(*matrices[:2], [np.arange(9)] * given, linear=matrices[2], starts=starts, steps=10)
    assignment = Assignment.scale_down(*matrices)
    assert asked == [(size, given, budget, -assignment.compute_bound(), assignment.tolerance)]
    assert found.steps == 77


@pytest.mark.parametrize("n", [FEW, FEW + 1])
def test_up_to_a_few_nodes_all_permutations_are_considered(n):
    source, target, _ = make_matrices("integer", n, 1)
    assert (local_search(source, target, rng=np.random.default_rng(0)).steps > 0) is (n > FEW)


@given(st.sampled_from(KINDS[:4]), st.integers(2, 9), st.integers(0, 999))
def test_descent_makes_the_best_exchange_each_time(kind, n, seed):
    source, target, linear = make_matrices(kind, n, seed)
    here, steps = np.random.default_rng(seed).permutation(n), 1
    found = exchange_pairs(source, target, here, linear=linear)
    while True:
        exchanged = []
        for u, v in itertools.combinations(range(n), 2):
            other = here.copy()
            other[[u, v]] = other[[v, u]]
            exchanged.append(other)
        costs = [cost_of(source, target, linear, other) for other in exchanged]
        if min(costs) >= cost_of(source, target, linear, here) - 1e-9:
            break
        here, steps = exchanged[int(np.argmin(costs))], steps + 1
    assert found.permutation.tolist() == here.tolist()
    assert found.steps == steps  # the last one finds nothing better
