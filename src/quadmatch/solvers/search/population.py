"""Permutations improved by exchange search, whose children keep what their parents agree on.

After C. Fleurent and J. Ferland, "Genetic hybrids for the quadratic assignment problem", DIMACS 16, 1994.
Exchange search alone stalls on sparse and clustered matrices, where good permutations differ in whole groups
of nodes; crossing moves such groups at once. A population that no longer improves is replaced by a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from quadmatch.solvers.compilation import call_stoppably, compile_loop
from quadmatch.solvers.search.exchange import improve
from quadmatch.solvers.search.problem import Index, Problem, Vector, evaluate, permute

AGREEMENT = 3
"""Populations in a row, none knowing of another, whose best are equal: then it is taken for the optimum."""
NEAR = 3
"""Nodes in which a child must differ from both parents, or it is shaken."""
LONG = 10**7
"""Cube of the size from which one search may take so long that it must hear Ctrl-C."""


@dataclass
class Population:
    """Permutations and their objectives; the best ever met is kept apart, so that it survives a new start."""

    size: int
    given: Sequence[Index]
    """Permutations to begin with, before random ones."""
    members: list[Index] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)
    best: Index = field(default_factory=lambda: np.empty(0, np.int64))
    largest: float = -np.inf
    """Objective of the best."""
    used: int = 0
    """How many of those given have been used."""
    in_vain: int = 0
    """Children in a row that were no better than the worst member."""
    agreeing: int = 0
    """Populations in a row whose best was no better than the best before."""

    def propose(self, n: int, rng: np.random.Generator) -> Index:
        """The next permutation to improve: a given or random one while the population grows, then a child."""
        if self.used < len(self.given) and len(self.members) < self.size:
            self.used += 1
            return self.given[self.used - 1].copy()
        if len(self.members) < max(2, self.size):
            return rng.permutation(n)
        one, shift = rng.integers((len(self.members), len(self.members) - 1)).tolist()
        mother, father = self.members[one], self.members[(one + 1 + shift) % len(self.members)]
        child, order = np.empty(n, np.int64), rng.permutation(n)
        # A child that is nearly its parent would only walk back to it.
        if cross(mother, father, rng.random(n), order, child) < NEAR:
            moved = order[: max(2, int(0.6 * n))]
            child[moved] = child[np.roll(moved, 1)]
        return child

    def admit(self, improved: Index, objective: float, tolerance: float) -> None:
        """Keep the permutation as a further member, or instead of the worst if it is new and no worse."""
        if objective > self.largest + tolerance:
            self.best, self.largest, self.agreeing = improved, objective, 0
        if len(self.members) < max(2, self.size):
            self.members.append(improved)
            self.objectives.append(objective)
            return
        self.in_vain += 1
        for member, known in zip(self.members, self.objectives):
            if abs(known - objective) <= tolerance and (member == improved).all():
                return
        least = min(self.objectives)
        if objective >= least:
            worst = self.objectives.index(least)
            if objective > least + tolerance:
                self.in_vain = 0
            self.members[worst], self.objectives[worst] = improved, objective

    def renew(self, tolerance: float) -> None:
        """Begin anew where children no longer help; count how many populations in a row came to one best."""
        if self.in_vain > 2 * self.size:
            self.agreeing = self.agreeing + 1 if max(self.objectives) >= self.largest - tolerance else 0
            self.members, self.objectives, self.in_vain = [], [], 0


@compile_loop
def cross(mother: Index, father: Index, coins: Vector, order: Index, child: Index) -> int:
    """Put each node where a parent has it while that is free, the rest where there is room.

    Nodes choose in random order, a parent by a random number below or above ½ each. How many nodes have
    another target than in the nearer parent is returned.
    """
    n = len(child)
    holder = np.empty(n, np.int64)
    for u in range(n):
        child[u] = holder[u] = -1
    for u in order:
        for choice in range(2):
            target = mother[u] if (coins[u] < 0.5) == (choice == 0) else father[u]
            if child[u] < 0 and holder[target] < 0:
                child[u], holder[target] = target, u
    free, from_mother, from_father = 0, 0, 0
    for u in order:
        if child[u] < 0:
            while holder[order[free]] >= 0:
                free += 1
            child[u] = order[free]
            holder[order[free]] = u
        from_mother += child[u] != mother[u]
        from_father += child[u] != father[u]
    return min(from_mother, from_father)


def evolve(
    problem: Problem,
    population: Population,
    steps: int,
    goal: float,
    tolerance: float,
    stop: Index,
    rng: np.random.Generator,
) -> int:
    """Spend about `steps` steps of exchange search; how many were spent.

    Fewer if the objective comes up to `goal`, or `AGREEMENT` populations agree, or `stop[0]` is set.
    """
    first, second, linear, _ = problem
    n, spent, seed = len(linear), 0, int(rng.integers(2**31))
    while spent < steps and population.agreeing < AGREEMENT and population.largest < goal - tolerance:
        p, seed = population.propose(n, rng), seed + 1
        search = (*problem, p, steps - spent, n, n, seed, stop)
        made = call_stoppably(improve, stop, *search, long=n**3 > LONG)
        objective = evaluate(first, permute(second, p), linear, p)
        spent += made + n // 4  # what it costs to begin anew
        population.admit(p, objective, tolerance)
        population.renew(tolerance)
        if stop[0]:
            break
    return spent
