import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadmatch.solvers.entropic import differentiate, step_softly
from quadmatch.solvers.enumeration import enumerate_all
from quadmatch.solvers.exchanges import begin, compute_cost, draw, exchange, make_workspace, sweep
from quadmatch.solvers.local_search import compute_bound, exchange_pairs, local_search, make_problem
from quadmatch.solvers.population import cross, evolve, make_population, shake, shuffle
from quadmatch.solvers.tabu import descend, search_tabu

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


def new_state(seed: int = 1) -> np.ndarray:
    return np.array([seed * 2**40 + 1], np.uint64)


@given(st.sampled_from(KINDS), st.integers(2, 35), st.integers(0, 999))
def test_changes_stay_what_they_are_from_scratch(kind, n, seed):
    source, target, linear = make_matrices(kind, n, seed)
    problem, rng = make_problem(source, target, linear), np.random.default_rng(seed)
    work, permutation = make_workspace(problem), rng.permutation(n)
    begin(problem, work, permutation)
    for _ in range(6):
        u, v = rng.choice(n, 2, replace=False)
        exchange(problem, work, permutation, u, v)
        sweep(problem, work, 1, -np.inf)
    assert sorted(permutation) == list(range(n))
    unit = compute_cost(problem, permutation), cost_of(source, target, linear, permutation)
    for u, v in itertools.islice(itertools.combinations(rng.permutation(n), 2), 20):
        other = permutation.copy()
        other[[u, v]] = other[[v, u]]
        change = cost_of(source, target, linear, other) - unit[1]
        ours = work.change[max(u, v), min(u, v)]
        assert ours == pytest.approx(compute_cost(problem, other) - unit[0], abs=1e-9)
        if kind != "zero" and abs(unit[1]) > 1e-9:  # the problem is scaled
            assert ours * unit[1] == pytest.approx(change * unit[0], abs=1e-7 * (1 + abs(unit[0] * unit[1])))


@given(st.sampled_from(KINDS), st.integers(2, 6), st.integers(0, 999))
def test_few_nodes_get_the_optimum(kind, n, seed):
    source, target, linear = make_matrices(kind, n, seed)
    found = local_search(source, target, linear=linear).permutation
    best = min(cost_of(source, target, linear, np.array(p)) for p in itertools.permutations(range(n)))
    assert cost_of(source, target, linear, found) == pytest.approx(best)


@given(st.sampled_from(KINDS), st.integers(2, 8), st.integers(0, 99))
@settings(max_examples=20)
def test_search_finds_what_enumeration_proves(kind, n, seed):
    problem = make_problem(*make_matrices(kind, n, seed))
    optimum = np.arange(n)
    enumerate_all(problem, optimum)
    population = make_population(8, np.empty((0, n), np.int64))
    evolve(problem, make_workspace(problem), population, 20_000, -np.inf, new_state(seed))
    least = compute_cost(problem, optimum)
    assert population.least[0] == pytest.approx(least, abs=1e-9)
    assert compute_cost(problem, population.best) == population.least[0]
    assert compute_bound(problem) <= least + 1e-9


@given(st.sampled_from(KINDS), st.integers(8, 30), st.integers(0, 999), st.integers(0, 4))
def test_result_is_a_permutation_no_worse_than_any_start(kind, n, seed, starts):
    source, target, linear = make_matrices(kind, n, seed)
    rng = np.random.default_rng(seed)
    given = np.array([rng.permutation(n) for _ in range(starts)], np.int64).reshape(-1, n)
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
    rng, state = np.random.default_rng(seed), new_state(seed)
    mother, father, child, order = (rng.permutation(n) for _ in range(4))
    agreed = rng.choice(n, n // 2, replace=False)
    father = mother.copy()
    rest = np.setdiff1d(np.arange(n), agreed)
    father[rest] = father[rng.permutation(rest)]
    distance = cross(mother, father, child, order, state)
    assert sorted(child) == list(range(n))
    same = mother == father
    assert (child[same] == mother[same]).all()
    assert distance == min((child != mother).sum(), (child != father).sum())
    shaken = child.copy()
    shake(shaken, 2, order, state)
    assert sorted(shaken) == list(range(n))
    assert (shaken != child).sum() == 2


def test_random_numbers_and_orders_are_uniform():
    state, order = new_state(), np.arange(4)
    numbers = np.array([draw(state) for _ in range(20_000)])
    assert 0 <= numbers.min() < 0.01 < 0.99 < numbers.max() < 1
    assert np.histogram(numbers, 10)[0].min() > 1800
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(12_000):
        shuffle(order, state)
        seen[tuple(order)] = seen.get(tuple(order), 0) + 1
    assert len(seen) == 24
    assert min(seen.values()) > 380


def test_the_same_state_walks_the_same_way():
    problem = make_problem(*make_matrices("asymmetric", 20, 0))
    results = []
    for _ in range(2):
        permutation, best = np.arange(20), np.arange(20)
        results.append(
            (*search_tabu(problem, make_workspace(problem), permutation, best, 500, new_state()), *best)
        )
    assert results[0] == results[1]


def test_tabu_search_leaves_a_local_optimum():
    problem, state = make_problem(*make_matrices("integer", 20, 3)), new_state()
    work, permutation, best = make_workspace(problem), np.arange(20), np.arange(20)
    descend(problem, work, permutation, 2**40, state)
    local = compute_cost(problem, permutation)
    least, steps = search_tabu(problem, work, permutation.copy(), best, 5000, state)
    assert least < local
    assert 20 <= steps <= 5000
    assert compute_cost(problem, best) == least


def test_search_ends_at_a_proven_optimum_or_on_agreement():
    rng = np.random.default_rng(0)
    graph = np.triu(rng.random((30, 30)) < 0.3, 1).astype(float)
    graph += graph.T
    order = rng.permutation(30)
    moved = graph[order][:, order]
    proven = local_search(-graph, moved, np.argsort(order)[None], starts=1000, steps=10**6)
    assert proven.steps < 1000
    easy = make_matrices("integer", 10, 0)
    agreed = local_search(easy[0], easy[1], linear=easy[2], starts=1000, steps=10**6, rng=rng)
    assert agreed.steps < 10**6


def test_scale_does_not_matter():
    source, target, linear = make_matrices("integer", 15, 5)
    plain = local_search(source, target, linear=linear, rng=np.random.default_rng(0))
    for left, right in ((2.0**60, 2.0**-200), (2.0**-300, 2.0**-300), (2.0**400, 2.0**400)):
        scaled = local_search(
            source * left, target * right, linear=linear * left * right, rng=np.random.default_rng(0)
        )
        if left * right > 1e-200:
            assert (scaled.permutation == plain.permutation).all()
    large = local_search(source * 1e-300, target, linear=linear * 1e10, rng=np.random.default_rng(0))
    from scipy.optimize import linear_sum_assignment

    assert linear[np.arange(15), large.permutation].sum() == linear[linear_sum_assignment(linear)].sum()


def test_deadline_stops_a_search_that_would_take_hours():
    source, target, _ = make_matrices("asymmetric", 40, 0)
    local_search(source, target, starts=1, steps=1)
    begun = time.perf_counter()
    found = local_search(source, target, starts=10**6, steps=10**6, deadline=begun + 0.2)
    assert time.perf_counter() - begun < 30
    assert sorted(found.permutation) == list(range(40))
    assert found.steps > 0
    passed = local_search(source, target, starts=10**6, steps=10**6, deadline=begun)
    assert sorted(passed.permutation) == list(range(40))


@pytest.mark.parametrize("kind", KINDS)
def test_soft_steps_go_down_and_carry_their_gradient_along(kind: str) -> None:
    source, target, linear = make_matrices(kind, 9, 1)
    symmetric = bool(np.array_equal(source, source.T) and np.array_equal(target, target.T))

    def evaluate(x: np.ndarray) -> float:
        return float((source * (x @ target @ x.T)).sum() + (linear * x).sum())

    relaxed = np.full((9, 9), 1 / 9)
    quadratic = differentiate(source, target, relaxed, symmetric)
    for _ in range(5):
        before = evaluate(relaxed)
        step_softly(source, target, linear, relaxed, quadratic, symmetric)
        assert evaluate(relaxed) <= before + 1e-9
        assert np.allclose(quadratic, source @ relaxed @ target.T + source.T @ relaxed @ target)
    assert np.allclose(relaxed.sum(1), 1)
