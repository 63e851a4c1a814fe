"""Frank–Wolfe on the relaxed problem, where a permutation may be any doubly stochastic matrix.

Minimised is f(P) = Σ A∘(P B Pᵀ) + Σ C∘P. Each round solves a linear assignment with the gradient and takes
the best step towards its solution (J. Vogelstein et al., "Fast approximate quadratic programming for graph
matching", PLOS ONE 10, 2015). The order of operations is that of scipy's `quadratic_assignment`, so that
without C the two agree to the last bit, integers being left integers: where many assignments are equally
good, rounding decides which one is met.
"""

from __future__ import annotations

import time

import numpy as np
from jaxtyping import Float, Int, Real
from numpy import ndarray

from quadmatch.solvers.search.relaxation import choose_best


def faq(
    source: Real[ndarray, "n n"],
    target: Real[ndarray, "n n"],
    linear: Float[ndarray, "n n"],
    start: Float[ndarray, "n n"],
    *,
    iterations: int = 30,
    tolerance: float = 0.03,
    deadline: float = np.inf,
) -> tuple[Int[ndarray, " n"], int]:
    """The permutation nearest to the last relaxed one, and how many rounds it took."""
    relaxed, identity, rounds = start, np.eye(len(start)), 0
    begun = time.perf_counter()
    for rounds in range(1, iterations + 1):
        gradient = linear + source @ relaxed @ target.T + source.T @ relaxed @ target
        chosen = choose_best(gradient, least=True)
        vertex = identity[chosen]
        away = relaxed - vertex
        share = choose_share(source, target, linear, away, chosen)
        before, relaxed = relaxed, share * relaxed + (1 - share) * vertex
        moved = np.linalg.norm(before - relaxed) / np.sqrt(len(start))
        now = time.perf_counter()
        if moved < tolerance or now + (now - begun) / rounds > deadline:
            break
    return choose_best(relaxed), rounds


def choose_share(
    source: Real[ndarray, "n n"],
    target: Real[ndarray, "n n"],
    linear: Float[ndarray, "n n"],
    away: Float[ndarray, "n n"],
    chosen: Int[ndarray, " n"],
) -> float:
    """The x in [0, 1] that minimises f(vertex + x·away), a parabola."""
    left, right = source.T @ away, target @ away.T
    slope = (linear * away).sum() + ((left * target.T[chosen]).sum() + (source * right[chosen]).sum())
    bend = (left.T * right).sum()
    if bend > 0 and 0 <= -slope / (2 * bend) <= 1:
        return float(-slope / (2 * bend))
    return 1.0 if slope + bend < 0 else 0.0


def make_barycenter(n: int) -> Float[ndarray, "n n"]:
    """The middle of all permutations."""
    return np.full((n, n), 1 / max(n, 1))


def draw_relaxed(n: int, rng: np.random.Generator) -> Float[ndarray, "n n"]:
    """Halfway between the middle and a random doubly stochastic matrix."""
    noise = rng.random((n, n)) + 1e-3
    for _ in range(50):
        noise /= noise.sum(axis=1, keepdims=True)
        noise /= noise.sum(axis=0, keepdims=True)
    return (make_barycenter(n) + noise) / 2
