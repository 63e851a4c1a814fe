"""What `quadratic_assignment` accepts: matrices and options, checked, under scipy's names."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.graphs.arrays import read_array, refuse_masked, to_dense

Pairs = NDArray[np.int64]
QUALITIES = ("fast", "standard", "best")
"""One relaxation and a short search; several and a longer one; all that helps, whatever the time."""
COMMON = {"maximize", "partial_match", "rng", "time_limit"}
RELAXED = {"P0", "shuffle_input", "maxiter", "tol"}
SEARCHED = {"quality", "starts", "partial_guess"}
UNDERSTOOD = {
    "auto": COMMON | RELAXED | SEARCHED,
    "tabu": COMMON | SEARCHED,
    "local_search": COMMON | SEARCHED,
    "faq": COMMON | RELAXED,
    "2opt": COMMON | {"partial_guess"},
    "soft": COMMON | {"quality", "starts", "P0", "maxiter"},
    "frank_wolfe": COMMON | {"quality", "starts", "P0", "maxiter"},
}


@dataclass(frozen=True)
class Settings:
    """Checked options; the defaults are scipy's where scipy has the option."""

    maximize: bool = False
    partial_match: Pairs = field(default_factory=lambda: np.empty((0, 2), np.int64))
    partial_guess: Pairs | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    P0: str | NDArray[np.float64] = "barycenter"
    shuffle_input: bool = False
    maxiter: int = 30
    tol: float = 0.03
    quality: str = "best"
    starts: int | None = None
    time_limit: float = float("inf")


def read_matrix(value: Any, name: str) -> NDArray[Any]:
    """A square array of finite numbers, int64 if all are integers and else float64."""
    if hasattr(value, "toarray"):
        value = to_dense(value, name)
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    refuse_masked(value, name)
    try:
        array = np.atleast_2d(value if isinstance(value, np.ndarray) else np.asarray(value))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} must be a square matrix of real numbers, got {error}") from error
    array = read_array(array, name)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"`A` and `B` must have exactly two dimensions, got shape {array.shape} for {name}")
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"`{name}` must be square, got shape {array.shape}")
    fits = array.dtype.kind in "bi" or (array.dtype.kind == "u" and array.max(initial=0) < 2**63)
    array = array.astype(np.int64 if fits else np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return array


def read_matrices(A: Any, B: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both matrices, as integers only if the objective cannot leave the range of 64 bits."""
    source, target = read_matrix(A, "A"), read_matrix(B, "B")
    if source.shape != target.shape:
        raise ValueError(f"`A` and `B` matrices must be of equal size, got {source.shape} and {target.shape}")
    largest = [max(abs(float(m.max(initial=0))), abs(float(m.min(initial=0)))) for m in (source, target)]
    bound = largest[0] * largest[1] * max(source.size, 1)
    if not bound < 1e290:
        raise ValueError(f"A and B are too large to multiply: their largest entries are {largest[0]} and {largest[1]}")
    return (source, target) if bound < 2**62 else (source.astype(float), target.astype(float))


def read_options(method: str, options: dict[str, Any], n: int) -> Settings:
    """Check each option for n nodes; one that the method does not know gives scipy's warning."""
    unknown = [name for name in options if name not in UNDERSTOOD[method]]
    if unknown:
        from scipy.optimize import OptimizeWarning

        message = f"Unknown solver options: {', '.join(map(str, unknown))}"
        warnings.warn(message, OptimizeWarning, stacklevel=3)
    known: dict[str, Any] = {name: value for name, value in options.items() if name not in unknown}
    known["rng"] = read_rng(known.get("rng"))
    known["partial_match"] = read_pairs(known.get("partial_match"), "partial_match", n)
    if known.get("partial_guess") is not None:
        known["partial_guess"] = read_pairs(known["partial_guess"], "partial_guess", n)
    known["P0"] = read_start(known.get("P0", "barycenter"), n - len(known["partial_match"]))
    for name in ("maxiter", "starts"):
        if known.get(name) is not None:
            known[name] = read_count(known[name], name)
    for name in ("tol", "time_limit"):
        if known.get(name) is not None:
            known[name] = read_positive(known[name], name)
    if known.get("quality", "best") not in QUALITIES:
        raise ValueError(f"quality must be one of {', '.join(QUALITIES)}, got {known['quality']!r}")
    return Settings(**{name: value for name, value in known.items() if value is not None})


def read_rng(value: Any) -> np.random.Generator:
    """A generator; anything that numpy's `default_rng` takes, and numpy's older random states."""
    if isinstance(value, np.random.RandomState) or value is np.random:
        value = value.randint(2**31)
    return np.random.default_rng(value)


def read_pairs(value: Any, name: str, n: int) -> Pairs:
    """Rows (node of A, node of B), no node twice."""
    refuse_masked(value, name)
    if value is None or np.size(value) == 0:
        return np.empty((0, 2), np.int64)
    pairs = np.atleast_2d(np.asarray(value))
    if pairs.ndim != 2:
        raise ValueError(f"`{name}` must have exactly two dimensions, got shape {pairs.shape}")
    if len(pairs) > n:
        rows = "seeds" if name == "partial_match" else "entries"
        raise ValueError(f"`{name}` can have only as many {rows} as there are nodes, {n}, got {len(pairs)}")
    if pairs.shape[1] != 2:
        raise ValueError(f"`{name}` must have two columns, got shape {pairs.shape}")
    if pairs.dtype.kind not in "iuf" or not (pairs == np.floor(pairs)).all():
        raise ValueError(f"`{name}` must hold integers, got dtype {pairs.dtype}")
    if (pairs < 0).any():
        raise ValueError(f"`{name}` must contain only positive indices or 0, got {pairs.min()}")
    if (pairs >= n).any():
        raise ValueError(f"`{name}` entries must be less than number of nodes, {n}, got {pairs.max()}")
    if any(len(np.unique(column)) < len(column) for column in pairs.T):
        raise ValueError(f"`{name}` column entries must be unique: each node at most once in a column")
    return pairs.astype(np.int64)


def read_start(value: Any, n: int) -> str | NDArray[np.float64]:
    """A doubly stochastic matrix of the nodes that are not seeds, or the name of one."""
    if isinstance(value, str):
        if value not in ("barycenter", "randomized"):
            raise ValueError(f"Invalid 'P0' parameter string, must be 'barycenter' or 'randomized', got {value!r}")
        return value
    refuse_masked(value, "P0")
    start = np.atleast_2d(np.asarray(value, float))
    if start.shape != (n, n):
        raise ValueError(
            f"`P0` matrix must have shape m' x m', where m'=n-m is the number of nodes without seed, {n}; "
            f"got {start.shape}"
        )
    sums = np.concatenate([start.sum(0), start.sum(1)])
    if not ((start >= 0).all() and np.allclose(sums, 1)):
        raise ValueError("`P0` matrix must be doubly stochastic: no entry below 0, rows and columns that sum to 1")
    return start


def read_count(value: Any, name: str) -> int:
    """An integer of at least one."""
    try:
        count = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{name} must be an integer, got {value!r}") from error
    if count < 1:
        raise ValueError(f"'{name}' must be a positive integer, got {count}")
    return count


def read_positive(value: Any, name: str) -> float:
    """A number above zero; infinity is one."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number, got {value!r}") from error
    if not number > 0:
        raise ValueError(f"'{name}' must be a positive float, got {number}")
    return number
