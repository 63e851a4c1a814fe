"""The parts of a discrete Frank–Wolfe step beside their formulas in numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadmatch.solvers.quadratic.hard_step import Problem, State, add_product, evaluate, fill_gradient, turn

GO_ON = np.zeros(1, np.int64)
"""The flag that ends loops, not set."""


@pytest.mark.parametrize("common", range(10))
def test_a_product_is_added_whatever_the_number_of_columns(common):
    rng = np.random.default_rng(common)
    left, right, result = rng.normal(size=(3, common)), rng.normal(size=(common, 5)), rng.normal(size=(3, 5))
    expected = result + left @ right
    add_product(left, right, result, GO_ON)
    np.testing.assert_allclose(result, expected, atol=1e-12)
    add_product(left, right, result, np.ones(1, np.int64))
    np.testing.assert_allclose(result, expected, atol=1e-12)
    assert np.array_equal(turn(left), left.T)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 9), m=st.integers(1, 9), masked=st.booleans(), even=st.booleans())
def test_gradient_and_objective_are_those_of_the_formula(seed, n, m, masked, even):
    rng = np.random.default_rng(seed)
    unary, source, target = rng.normal(size=(n, m)), rng.normal(size=(n, n)), rng.normal(size=(m, m))
    source *= rng.random((n, n)) < 0.7
    if even:
        source, target = source + source.T, target + target.T
    x, weight = rng.random((n, m)), 0.3
    there, back = x @ target, x @ target.T
    image = there @ x.T
    problem = Problem(unary, source, target, weight, masked, even, GO_ON)
    counted = (source != 0) if masked else np.ones((n, n))
    residual, gradient = np.zeros((n, n)), np.zeros((n, m))
    assert fill_gradient(State(x, there, back, image), problem, residual, gradient)
    left = counted * (source - image)
    if even:  # Where X is no permutation a masked residual is symmetric as well, since A and XBXᵀ are.
        assert np.allclose(left, left.T)
    expected = -2 * weight * (left.T @ there + left @ back) - (1 - weight) * unary
    np.testing.assert_allclose(gradient, expected, atol=1e-9)
    order = np.full(n, -1)
    matched = rng.permutation(n)[: min(n, m)]
    order[matched] = rng.permutation(m)[: len(matched)]
    chosen = np.zeros((n, m))
    chosen[matched, order[matched]] = 1
    missed = counted * (source - chosen @ target @ chosen.T)
    expected = weight * (missed**2).sum() - (1 - weight) * (unary * chosen).sum()
    assert evaluate(order, problem) == pytest.approx(expected, abs=1e-9)
