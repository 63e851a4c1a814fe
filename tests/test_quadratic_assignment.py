"""quadratic_assignment against scipy and brute force; scipy's own examples run with only the import changed."""

import doctest
import itertools

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

import quadmatch
from quadmatch import quadratic_assignment


def _matrices(n: int, seed: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 9, (2, n, n)).astype(float)
    if kind == "symmetric":
        a, b = a + a.T, b + b.T
        np.fill_diagonal(a, 0)
        np.fill_diagonal(b, 0)
    return a, b


def _cost(a: np.ndarray, b: np.ndarray, p: np.ndarray) -> float:
    return float((a * b[np.ix_(p, p)]).sum())


@given(st.integers(1, 6), st.integers(0, 1000), st.sampled_from(["symmetric", "asymmetric"]), st.booleans())
def test_small_problems_are_solved(n, seed, kind, maximize):
    a, b = _matrices(n, seed, kind)
    found = quadratic_assignment(a, b, options={"maximize": maximize, "rng": seed})
    costs = [_cost(a, b, np.array(p)) for p in itertools.permutations(range(n))]
    assert found.fun == pytest.approx(max(costs) if maximize else min(costs))
    assert found.fun == pytest.approx(_cost(a, b, found.col_ind))


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("method", ["auto", "faq", "2opt", "tabu", "frank_wolfe"])
def test_every_method_gives_a_permutation_and_its_cost(method, kind):
    a, b = _matrices(15, 3, kind)
    found = quadratic_assignment(a, b, method, {"rng": 0})
    assert sorted(found.col_ind) == list(range(15))
    assert found.fun == pytest.approx(_cost(a, b, found.col_ind))
    assert set(found) >= {"col_ind", "fun", "nit"}


@pytest.mark.parametrize("quality", ["fast", "best"])
@pytest.mark.parametrize("seed", range(4))
def test_never_worse_than_scipy(quality, seed):
    a, b = _matrices(18, seed, "symmetric" if seed % 2 else "asymmetric")
    ours = quadratic_assignment(a, b, options={"quality": quality, "rng": 0}).fun
    assert ours <= scipy.optimize.quadratic_assignment(a, b).fun + 1e-9


def test_seeds_are_honoured():
    a, b = _matrices(12, 5, "asymmetric")
    seeds = np.array([[0, 3], [7, 1], [2, 2]])
    for method in ("auto", "faq", "2opt", "tabu", "frank_wolfe"):
        found = quadratic_assignment(a, b, method, {"partial_match": seeds, "rng": 1})
        assert found.col_ind[seeds[:, 0]].tolist() == seeds[:, 1].tolist()


def test_same_seed_same_result():
    a, b = _matrices(25, 7, "symmetric")
    first, second = (quadratic_assignment(a, b, options={"rng": 4}) for _ in range(2))
    assert first.col_ind.tolist() == second.col_ind.tolist()
    assert first.fun == second.fun


def test_maximum_is_the_minimum_of_the_negative():
    a, b = _matrices(14, 2, "asymmetric")
    most = quadratic_assignment(a, b, options={"maximize": True, "rng": 0}).fun
    assert most == pytest.approx(-quadratic_assignment(-a, b, options={"rng": 0}).fun)


def test_time_limit_returns_a_permutation():
    a, b = _matrices(60, 1, "symmetric")
    found = quadratic_assignment(a, b, options={"time_limit": 0.05, "starts": 64, "rng": 0})
    assert sorted(found.col_ind) == list(range(60))


def test_empty_problem():
    found = quadratic_assignment(np.zeros((0, 0)), np.zeros((0, 0)))
    assert len(found.col_ind) == 0
    assert found.fun == 0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros((2, 3)), np.zeros((2, 3))),
        (np.zeros((2, 2)), np.zeros((3, 3))),
        (np.full((2, 2), np.nan), np.zeros((2, 2))),
        (np.zeros((2, 2), complex), np.zeros((2, 2))),
        (np.zeros(4), np.zeros(4)),
    ],
)
def test_bad_matrices_are_refused(a, b):
    with pytest.raises((ValueError, TypeError)):
        quadratic_assignment(a, b)


def test_bad_options_are_refused():
    a, b = _matrices(4, 0, "symmetric")
    with pytest.raises(ValueError, match="method"):
        quadratic_assignment(a, b, method="nothing")
    with pytest.raises(ValueError, match="quality"):
        quadratic_assignment(a, b, options={"quality": "good"})
    with pytest.raises((ValueError, TypeError), match="time_limit"):
        quadratic_assignment(a, b, options={"time_limit": -1})


def test_scipys_examples_run_with_only_the_import_changed():
    text = scipy.optimize.quadratic_assignment.__doc__.replace(
        "from scipy.optimize import quadratic_assignment", "from quadmatch import quadratic_assignment"
    )
    assert "from quadmatch import" in text
    test = doctest.DocTestParser().get_doctest(text, {"np": np}, "scipy", None, 0)
    assert len(test.examples) >= 5
    for example in test.examples:
        # The result of a better solver may differ from the printed one: only that each line runs is asked.
        exec(compile(example.source, "<scipy>", "single"), test.globs)
    assert test.globs["quadratic_assignment"] is quadmatch.quadratic_assignment
    assert set(test.globs["res"]) >= {"col_ind", "fun", "nit"}
