"""Permutations improved by tabu search, whose children keep what their parents agree on.

After C. Fleurent and J. Ferland, "Genetic hybrids for the quadratic assignment problem", DIMACS 16, 1994.
Tabu search alone stalls on sparse and clustered matrices, where good permutations differ in whole groups of
nodes; crossing moves such groups at once. A population that no longer improves is replaced by a new one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadmatch.solvers.compilation import compile_loop
from quadmatch.solvers.exchanges import Permutation, Problem, State, Workspace, copy_into, draw
from quadmatch.solvers.tabu import search_tabu

Members = NDArray[np.int64]
Costs = NDArray[np.float64]
Counts = NDArray[np.int64]


class Population(NamedTuple):
    """Members and their costs; the best permutation ever met stays apart, so that it survives a new start."""

    members: Members  # [size, n]
    costs: Costs  # [size]
    given: Members  # [any, n]: permutations to start from, before random ones
    best: Permutation
    least: Costs  # [1]: its cost
    counts: Counts  # [4]: members, children in a row in vain, given ones used, populations that agree


def make_population(size: int, given: Members) -> Population:
    """An empty one, that will begin with the given permutations [any, n]."""
    n = given.shape[1]
    counts = np.zeros(4, np.int64)
    members = np.zeros((size, n), np.int64)
    return Population(members, np.full(size, np.inf), given, np.arange(n), np.full(1, np.inf), counts)


@compile_loop
def shuffle(order: Permutation, state: State) -> None:
    """Put in random order, all orders with the same chance."""
    for i in range(len(order) - 1, 0, -1):
        j = int(draw(state) * (i + 1))
        order[i], order[j] = order[j], order[i]


@compile_loop
def shake(permutation: Permutation, count: int, order: Permutation, state: State) -> None:
    """Pass the targets of `count` random nodes around in a ring."""
    shuffle(order, state)
    first = permutation[order[0]]
    for i in range(count - 1):
        permutation[order[i]] = permutation[order[i + 1]]
    permutation[order[count - 1]] = first


@compile_loop
def measure_distance(one: Permutation, other: Permutation) -> int:
    """How many nodes have another target."""
    distance = 0
    for u in range(len(one)):
        distance += one[u] != other[u]
    return distance


@compile_loop
def cross(
    mother: Permutation, father: Permutation, child: Permutation, order: Permutation, state: State
) -> int:
    """Put each node where a parent has it while that is free; return how far the nearer parent is."""
    n = len(child)
    taken = np.zeros(n, np.bool_)
    for u in range(n):
        agreed = mother[u] == father[u]
        child[u] = mother[u] if agreed else -1
        if agreed:
            taken[mother[u]] = True
    shuffle(order, state)
    for u in order:
        if child[u] < 0:
            first, second = mother[u], father[u]
            if draw(state) < 0.5:
                first, second = second, first
            choice = second if taken[first] else first
            if not taken[choice]:
                child[u], taken[choice] = choice, True
    shuffle(order, state)
    u = 0
    for target in order:
        if not taken[target]:
            while child[u] >= 0:
                u += 1
            child[u] = target
    return min(measure_distance(child, mother), measure_distance(child, father))


@compile_loop
def propose(population: Population, child: Permutation, order: Permutation, state: State) -> None:
    """The next permutation to improve: a given or random one while the population grows, then a child."""
    members, counts, size, n = population.members, population.counts, len(population.members), len(child)
    if counts[0] < size:
        if counts[2] < len(population.given):
            copy_into(child, population.given[counts[2]])
            counts[2] += 1
        else:
            copy_into(child, order)
            shuffle(child, state)
        return
    mother = int(draw(state) * size)
    father = (mother + 1 + int(draw(state) * max(1, size - 1))) % size
    # A child that is nearly its parent would only walk back to it.
    if cross(members[mother], members[father], child, order, state) < 3:
        shake(child, max(2, int(0.6 * n)), order, state)


@compile_loop
def admit(population: Population, improved: Permutation, cost: float, tolerance: float) -> None:
    """Keep the permutation as a further member, or instead of the worst if it is new and no worse."""
    members, costs, counts = population.members, population.costs, population.counts
    if counts[0] < len(members):
        copy_into(members[counts[0]], improved)
        costs[counts[0]] = cost
        counts[0] += 1
        return
    counts[1] += 1
    worst = 0
    for k in range(len(members)):
        if costs[k] > costs[worst]:
            worst = k
        if abs(costs[k] - cost) <= tolerance and measure_distance(members[k], improved) == 0:
            return
    if cost <= costs[worst]:
        if cost < costs[worst] - tolerance:
            counts[1] = 0
        copy_into(members[worst], improved)
        costs[worst] = cost


@compile_loop
def renew(population: Population, tolerance: float) -> None:
    """Replace a population that improves no more; count how many in a row came to the same best cost."""
    counts = population.counts
    if counts[1] > 2 * len(population.members):
        counts[0], counts[1] = 0, 0
        least = population.costs[0]
        for cost in population.costs:
            least = min(least, cost)
        counts[3] = counts[3] + 1 if least <= population.least[0] + tolerance else 0


@compile_loop
def evolve(
    problem: Problem, work: Workspace, population: Population, steps: int, goal: float, state: State
) -> int:
    """Spend about `steps` steps of tabu search; how many were spent.

    Fewer if the cost comes down to `goal`, or three populations that know nothing of each other agree.
    """
    n, tolerance, spent = len(population.best), problem.tolerance, 0
    child, improved, order = np.arange(n), np.arange(n), np.arange(n)
    while spent < steps and population.counts[3] < 3 and not work.stop[0]:
        propose(population, child, order, state)
        cost, length = search_tabu(problem, work, child, improved, steps - spent, state)
        spent += length + n // 4  # what it costs to begin anew
        if cost < population.least[0] - tolerance:
            copy_into(population.best, improved)
            population.least[0], population.counts[3] = cost, 0
            if cost <= goal + tolerance:
                break
        admit(population, improved, cost, tolerance)
        renew(population, tolerance)
    return spent
