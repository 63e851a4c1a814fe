"""Which permutations a population keeps, and when it begins anew."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from quadmatch.solvers.search import population as population_module
from quadmatch.solvers.search.population import AGREEMENT, NEAR, Population, cross, evolve

ORDERS = [np.array(order) for order in ([0, 1, 2, 3], [1, 0, 2, 3], [2, 1, 0, 3], [0, 1, 3, 2], [3, 1, 2, 0])]
TOLERANCE = 1e-6


@pytest.fixture
def population() -> Population:
    """Two members, of the objectives 1 and 2."""
    made = Population(2, [])
    for order, objective in zip(ORDERS, (1.0, 2.0)):
        made.admit(order, objective, TOLERANCE)
    return made


def test_the_worst_makes_room_and_only_what_is_better_counts(population: Population) -> None:
    for number, (order, objective) in enumerate(zip(ORDERS[2:4], (1.0, 1.0 + TOLERANCE / 2)), 1):
        population.admit(order, objective, TOLERANCE)  # as good as the worst: another member, but in vain
        assert population.in_vain == number
        assert (population.members[0] == order).all()
    population.admit(ORDERS[4], 0.5, TOLERANCE)
    assert (population.in_vain, population.objectives) == (3, [1.0 + TOLERANCE / 2, 2.0])
    population.admit(ORDERS[4], 1.5, TOLERANCE)
    assert (population.in_vain, population.objectives) == (0, [1.5, 2.0])
    assert (population.best == ORDERS[1]).all()
    assert population.largest == 2.0


def test_who_is_there_already_is_not_taken_twice(population: Population) -> None:
    population.admit(ORDERS[1], 2.0, TOLERANCE)
    assert population.objectives == [1.0, 2.0]
    assert population.in_vain == 1


def test_populations_that_come_to_the_same_best_agree(population: Population) -> None:
    population.in_vain = 4
    population.renew(TOLERANCE)
    assert population.members  # four in vain are as many as a population of two is allowed
    population.in_vain = 5
    population.renew(TOLERANCE)
    assert (population.agreeing, population.members, population.objectives) == (1, [], [])
    for objective, agreeing in ((2.0 - TOLERANCE / 2, 2), (1.5, 0)):
        population.admit(ORDERS[2], objective, TOLERANCE)
        population.in_vain = 5
        population.renew(TOLERANCE)
        assert population.agreeing == agreeing
    population.agreeing = 3
    population.admit(ORDERS[3], 2.5, TOLERANCE)
    assert (population.agreeing, population.largest) == (0, 2.5)


def test_those_given_come_first_and_then_random_ones_until_two_at_least():
    rng = np.random.default_rng(0)
    population = Population(3, [ORDERS[1], ORDERS[2]])
    for order in ORDERS[1:3]:
        proposed = population.propose(4, rng)
        assert proposed is not order
        assert np.array_equal(proposed, order)
        population.admit(proposed, 0.0, TOLERANCE)
    drawn = {tuple(population.propose(4, rng).tolist()) for _ in range(200)}
    assert len(drawn) == 24
    single = Population(1, [ORDERS[1], ORDERS[2]])
    single.admit(single.propose(4, rng), 0.0, TOLERANCE)
    assert single.used == 1
    assert len({tuple(single.propose(4, rng).tolist()) for _ in range(200)}) == 24  # no room for the other one given
    single.admit(ORDERS[3], 1.0, TOLERANCE)
    assert len(single.members) == 2
    assert (single.used, len(Population(1, []).members)) == (1, 0)


def test_parents_are_any_two_members_but_never_one_alone(monkeypatch):
    met = set()

    def record(mother, father, coins, order, child):
        met.add((int(mother[0]), int(father[0])))
        assert coins.min() >= 0
        assert sorted(order) == list(range(4))
        child[:] = mother
        return NEAR

    monkeypatch.setattr(population_module, "cross", record)
    population, rng = Population(3, []), np.random.default_rng(0)
    for order in (ORDERS[0], ORDERS[1], ORDERS[2]):
        population.admit(order, 0.0, TOLERANCE)
    for _ in range(200):
        population.propose(4, rng)
    assert met == set(permutations((0, 1, 2), 2))


@pytest.mark.parametrize(("n", "moved"), [(2, 2), (4, 2), (5, 3), (10, 6), (19, 11)])
def test_a_child_near_its_parents_is_shaken_in_six_tenths_of_its_nodes(monkeypatch, n, moved):
    population, rng, same = Population(2, []), np.random.default_rng(0), np.arange(n)
    population.admit(same, 0.0, TOLERANCE)
    population.admit(same.copy(), 0.0, TOLERANCE)
    for _ in range(5):
        child = population.propose(n, rng)
        assert sorted(child) == list(range(n))
        assert (child != same).sum() == moved
        place = begin = int(np.flatnonzero(child != same)[0])
        for _ in range(moved):  # one circle
            place = child[place]
        assert place == begin
    for distance, shaken in ((NEAR - 1, moved), (NEAR, 0)):

        def stay(mother, father, coins, order, child, distance=distance):
            child[:] = mother
            return distance

        monkeypatch.setattr(population_module, "cross", stay)
        assert (population.propose(n, rng) != same).sum() == shaken


def test_what_is_better_by_no_more_than_rounding_is_no_new_best(population: Population) -> None:
    population.agreeing = 2
    population.admit(ORDERS[2], 2.0 + TOLERANCE / 2, TOLERANCE)
    assert (population.largest, population.agreeing) == (2.0, 2)
    assert (population.best == ORDERS[1]).all()
    population.admit(ORDERS[3], 2.0 + 2 * TOLERANCE, TOLERANCE)
    assert (population.largest, population.agreeing) == (2.0 + 2 * TOLERANCE, 0)


def cross_plainly(mother, father, coins, order):
    """Nodes in their order take what the parent of their coin has, else the other; then the rest what is left."""
    taken, late = {}, []
    for node in order.tolist():
        wishes = [one[node] for one in ((mother, father) if coins[node] < 0.5 else (father, mother))]
        free = [target for target in wishes if target not in taken.values()]
        if free:
            taken[node] = free[0]
        else:
            late.append(node)
    left = [target for target in order.tolist() if target not in taken.values()]
    taken |= dict(zip(late, left, strict=True))
    return [taken[node] for node in range(len(order))]


def test_a_child_takes_from_the_parent_of_each_coin_while_that_is_free():
    rng, some_late = np.random.default_rng(0), 0
    for n in (2, 3, 6, 12):
        for _ in range(40):
            mother, father, order, child = rng.permutation(n), rng.permutation(n), rng.permutation(n), np.arange(n)
            coins = rng.choice([0.0, 0.3, 0.5, 0.8], n)
            distance = cross(mother, father, coins, order, child)
            assert child.tolist() == cross_plainly(mother, father, coins, order)
            assert distance == min((child != mother).sum(), (child != father).sum())
            some_late += ((child != mother) & (child != father)).any()
    assert some_late


@pytest.fixture
def searches(monkeypatch):
    """Searches that make five steps each and change nothing; what they were asked for."""
    asked = []

    def record(loop, stop, first, second, linear, even, p, steps, patience, rows, seed, flag, *, long):
        asked.append((steps, patience, rows, seed, long))
        return 5

    monkeypatch.setattr(population_module, "call_stoppably", record)
    return asked


def evolve_plainly(population, steps, goal=np.inf, tolerance=0.5, stop=0):
    terms = np.zeros((1, 9, 9))
    linear = np.arange(9.0)[:, None] * np.arange(9.0)
    flag = np.array([stop])
    return evolve((terms, terms, linear, 1), population, steps, goal, tolerance, flag, np.random.default_rng(0))


def test_a_budget_is_spent_on_steps_and_on_a_quarter_of_the_nodes_for_each_start(searches):
    population = Population(4, [])
    assert evolve_plainly(population, 20) == 21
    assert [one[:3] for one in searches] == [(20, 9, 9), (13, 9, 9), (6, 9, 9)]
    first = searches[0][3]
    assert [one[3] for one in searches] == [first, first + 1, first + 2]
    assert len(population.members) == 3
    for member, objective in zip(population.members, population.objectives):
        assert objective == pytest.approx((np.arange(9) * member).sum())


@pytest.mark.parametrize(("limit", "long"), [(728, True), (729, False)])
def test_a_search_hears_ctrl_c_where_its_size_makes_it_long(searches, monkeypatch, limit, long):
    monkeypatch.setattr(population_module, "LONG", limit)
    evolve_plainly(Population(4, []), 1)
    assert [one[4] for one in searches] == [long]


def test_evolution_ends_at_the_goal_on_agreement_or_when_it_is_stopped(searches):
    worth = 204.0  # of the identity
    for goal, count in ((worth + 1, 3), (worth + 0.4, 1), (worth, 1)):
        searches.clear()
        evolve_plainly(Population(4, [np.arange(9)]), 20, goal)
        assert len(searches) == count
    agreeing = Population(4, [], agreeing=AGREEMENT)
    assert evolve_plainly(agreeing, 20) == 0
    assert evolve_plainly(Population(4, [], agreeing=AGREEMENT - 1, largest=1e9), 7) == 7
    assert evolve_plainly(Population(4, []), 20, stop=1) == 7
