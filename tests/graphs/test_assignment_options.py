import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import OptimizeWarning
from scipy.sparse import csr_array

from quadmatch import quadratic_assignment


def make_integers(n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 9, (2, n, n))


@pytest.mark.parametrize("rng", [0, np.random.default_rng(0), np.random.RandomState(0), np.random.PCG64(0), np.random])
def test_any_random_state_is_taken(rng):
    source, target = make_integers(9)
    assert sorted(quadratic_assignment(source, target, "2opt", {"rng": rng}).col_ind) == list(range(9))


def test_any_array_is_taken():
    source, target = make_integers(6)
    plain = quadratic_assignment(source, target)
    for kind in (np.ndarray.tolist, torch.tensor, csr_array, np.float32, np.int8, np.uint64, np.asfortranarray):
        other = quadratic_assignment(kind(source), kind(target))
        assert (other.col_ind == plain.col_ind).all()
        assert other.fun == plain.fun
    gradient = quadratic_assignment(torch.rand(5, 5, requires_grad=True), torch.rand(5, 5, dtype=torch.float64))
    assert sorted(gradient.col_ind) == list(range(5))


def test_integers_do_not_overflow():
    for entry, dtype in ((100, np.int8), (2**40, np.int64), (2**64 - 1, np.uint64)):
        full = np.full((3, 3), entry, dtype)
        assert quadratic_assignment(full, full).fun == pytest.approx(9 * float(entry) ** 2)
    assert quadratic_assignment(np.ones((3, 3), bool), np.eye(3, dtype=bool)).fun == 3


square = np.eye(4)
BAD = [
    (np.ones((2, 3)), square, "`A` must be square"),
    (square, np.ones((2, 3)), "`B` must be square"),
    (square, np.eye(3), "equal size"),
    (np.ones((2, 2, 2)), square, "exactly two dimensions, .* for A"),
    (square, np.where(square == 0, np.nan, 1), "B must be finite"),
    (np.where(square == 0, np.inf, 1), square, "A must be finite"),
    (square * 1j, square, "real numbers, got dtype complex"),
    (square.astype(object), square, "real numbers, got dtype object"),
    ([["a", "b"], ["c", "d"]], np.eye(2), "A must hold real numbers"),
    ([[1, 2], [3]], np.eye(2), "A must"),
    (None, square, "A must hold real numbers"),
    (square * 1e200, square * 1e200, "too large"),
]


@pytest.mark.parametrize(("source", "target", "message"), BAD, ids=range(len(BAD)))
def test_bad_matrices_are_named(source, target, message):
    with pytest.raises(ValueError, match=message):
        quadratic_assignment(source, target)


BAD_OPTIONS = [
    {"partial_match": [[0, 9]]},
    {"partial_match": [[-1, 0]]},
    {"partial_match": [[0, 1], [0, 2]]},
    {"partial_match": [[1, 0], [2, 0]]},
    {"partial_match": [[0, 1, 2]]},
    {"partial_match": [[0.5, 1]]},
    {"partial_match": np.zeros((1, 1, 2))},
    {"partial_match": [["a", "b"]]},
    {"partial_guess": [[0, 9]]},
    {"P0": "middle"},
    {"P0": np.eye(3)},
    {"P0": np.ones((4, 4))},
    {"P0": 2 * np.eye(4) - np.roll(np.eye(4), 1, axis=0)},
    {"P0": np.full((4, 4), np.nan)},
    {"maxiter": 0},
    {"maxiter": 1.5},
    {"starts": 0},
    {"starts": "many"},
    {"tol": 0},
    {"tol": np.nan},
    {"time_limit": -1},
    {"time_limit": "long"},
    {"quality": "perfect"},
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=str)
def test_bad_options_are_named(options):
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        quadratic_assignment(square, square, options=options)


def test_unknown_names():
    with pytest.raises(ValueError, match="method must be one of auto, "):
        quadratic_assignment(square, square, "newton")
    for method, name in (("auto", "speed"), ("faq", "partial_guess"), ("2opt", "tol")):
        with pytest.warns(OptimizeWarning, match=f"Unknown solver options: {name}"):
            quadratic_assignment(square, square, method, {name: None})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quadratic_assignment(square, square, "FAQ", {}).fun == quadratic_assignment(square, square).fun
