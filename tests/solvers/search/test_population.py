"""Which permutations a population keeps, and when it begins anew."""

from __future__ import annotations

import numpy as np
import pytest

from quadmatch.solvers.search.population import Population

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
