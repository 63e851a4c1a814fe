import math

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from quadmatch.graphs.inputs import read_inputs
from quadmatch.graphs.match_graphs import METHODS, match_graphs
from quadmatch.graphs.memory import estimate_memory
from quadmatch.graphs.quadratic_assignment import quadratic_assignment

GOOD = np.array([[0.0, 1, 0], [1, 0, 2], [0, 2, 0]])
LOOP = GOOD + np.diag([0.0, 3, 0])


def _with(value):
    matrix = GOOD.copy()
    matrix[0, 1] = value
    return matrix


class Nothing:
    """An object that is no graph."""


class Table:
    """As much of a pandas table as is looked at."""

    def __init__(self, values, index, columns=None):
        self.values, self.index, self.columns = np.array(values), list(index), list(columns or index)

    def to_numpy(self):
        return self.values

    def __array__(self, dtype=None, copy=None):
        return self.values


CASES = [
    ("a", np.ones((2, 3)), ValueError, r"a must be square.*\[2, 3\]"),
    ("b", np.ones((2, 3)), ValueError, r"b must be square"),
    ("a", np.ones(4), ValueError, r"a must have two axes; got shape \[4\]"),
    ("a", np.zeros((2, 3, 3)), ValueError, r"two axes.*for a batch pass a list"),
    ("a", _with(math.nan), ValueError, r"a must be finite; got nan"),
    ("b", _with(math.inf), ValueError, r"b must be finite; got inf"),
    ("a", _with(1e200), ValueError, r"a must be at most 1e\+100 in size"),
    ("a", LOOP, ValueError, r"a must have no self loop; got 3 at node 1"),
    ("b", LOOP, ValueError, r"b must have no self loop"),
    ("a", GOOD.astype(complex), TypeError, r"a must hold real numbers; got an array of complex128"),
    ("b", GOOD.astype(object), TypeError, r"b must hold real numbers; got an array of object"),
    ("a", torch.zeros(2, 2, dtype=torch.complex64), TypeError, r"a must be real"),
    ("a", [[0, 1], [1]], ValueError, r"a must have rows of one length"),
    ("a", "graph", TypeError, r"a must be a matrix.*got str"),
    ("b", 3, TypeError, r"b must be a matrix.*got int"),
    ("a", None, TypeError, r"a must be a matrix.*got NoneType"),
    ("b", Nothing(), TypeError, r"b must be a matrix.*got Nothing"),
    ("a", [GOOD], TypeError, r"a and b must both be one graph or both be lists"),
    ("unary", np.ones((3, 2)), ValueError, r"unary must have shape \[3, 3\].*got \[3, 2\]"),
    ("unary", np.full((3, 3), math.nan), ValueError, r"unary must be finite; got nan"),
    ("unary", [1.0, 2.0], ValueError, r"unary must have two axes"),
    ("unary", np.ones((3, 3), dtype=complex), TypeError, r"unary must hold real numbers"),
    ("a", torch.zeros(3, 3, device="meta"), ValueError, r"meta"),
    ("a", [(0, 1), (1, 2), (2, 3)], ValueError, r"a must be square.*got shape \[3, 2\]\. If these are edges.*networkx"),
    ("a", np.array([[0, 1], [1, 2]]), ValueError, r"self loop; got 2 at node 1.*If these are edges"),
    ("b", [(0, 1, 0.5), (1, 2, 0.25), (0, 2, 0.5), (2, 3, 1)], ValueError, r"b must be square.*If these are edges"),
    ("b", torch.tensor([[0, 1, 1], [1, 2, 0]]), ValueError, r"b must be square.*If these are edges"),
    ("a", Table([[0, 1], [1, 0]], "xy", "yx"), ValueError, r"a must have the same labels.*number 0 is 'x' and 'y'"),
    ("a", nx.Graph([(0, 0)]), ValueError, r"a must have no self loop"),
    ("a", nx.Graph([(0, 1, {"weight": "heavy"})]), TypeError, r"weight of edge \(0, 1\).*'heavy'"),
]
OPTIONS = [
    ({"method": "best"}, r"method must be one of auto"),
    ({"quality": "quick"}, r"quality must be one of fast, standard, best"),
    ({"weight": 1.5}, r"weight must be from 0 to 1"),
    ({"weight": math.nan}, r"weight must be from 0 to 1"),
    ({"threshold": 0}, r"threshold must be above 0"),
    ({"temperature": 0}, r"temperature must be above 0"),
    ({"method": "rrwm", "partial": True}, r"partial needs method 'auto'; got 'rrwm'"),
    ({"method": "hungarian"}, r"needs unary"),
    ({"time_limit": -1.0}, r"time_limit must be 0 or more seconds"),
    ({"time_limit": math.inf}, r"time_limit must be 0 or more seconds"),
    ({"method": "rrwm", "time_limit": 1.0}, r"time_limit needs method 'auto'"),
    ({"method": "rrwm", "progress": True}, r"progress needs method 'auto'"),
]


@pytest.mark.parametrize(("name", "value", "kind", "message"), CASES)
def test_bad_input_is_named(name, value, kind, message):
    arguments = {"a": GOOD, "b": GOOD, "unary": None} | {name: value}
    with pytest.raises(kind, match=message):
        match_graphs(**arguments)


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_bad_options_are_named(options, message):
    # In tests the annotations are checked as well, and some of these are no valid literal.
    with pytest.raises((ValueError, TypeError), match=rf"{message}|{next(iter(options))}"):
        match_graphs(GOOD, GOOD, **options)


def test_a_matrix_that_cannot_be_edges_gets_no_advice_on_them():
    with pytest.raises(ValueError, match=r"got shape \[3, 2\]$"):
        match_graphs([(0.5, 1), (1, 2), (2, 3)], GOOD)
    with pytest.raises(ValueError, match=r"takes a diagonal$"):
        match_graphs(LOOP, GOOD)


@pytest.mark.parametrize("method", ["auto", "rrwm", "frank_wolfe"])
def test_names_in_names_out(method):
    named = nx.Graph([("x", "y", {"weight": 2.0}), ("y", "z")])
    other = nx.Graph([("two", "three"), ("one", "two", {"weight": 2.0})])
    expected = {("x", "one"), ("y", "two"), ("z", "three")}
    assert set(match_graphs(named, other, method=method).named_pairs) == expected
    matrix = nx.to_numpy_array(named)
    assert match_graphs(matrix, matrix, method=method).named_pairs == [(0, 0), (1, 1), (2, 2)]
    results = match_graphs([matrix, Table(matrix, "xyz")], [other, matrix], method=method)
    assert set(results[0].named_pairs) == {(0, "one"), (1, "two"), (2, "three")}
    assert results[1].named_pairs == [("x", 0), ("y", 1), ("z", 2)]


def test_a_search_without_enough_memory_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr("quadmatch.graphs.memory.measure_available_memory", lambda: 3 * 2**30)
    monkeypatch.setattr("quadmatch.graphs.results.lay_out", None)
    graph = np.broadcast_to(np.float32(0), (6000, 6000))  # one number in memory
    other = np.broadcast_to(np.float32(1), (6000, 6000))
    with pytest.raises(MemoryError, match=r"6000 and 6000 nodes needs about 3\.8 GB of memory, and 3\.0 GB are free"):
        match_graphs(graph, other)


@pytest.mark.parametrize("call", [match_graphs, quadratic_assignment])
def test_a_sparse_matrix_that_does_not_fit_as_a_dense_one_is_refused(monkeypatch, call):
    monkeypatch.setattr("quadmatch.machine.measure_available_memory", lambda: 3 * 2**30)
    sparse = scipy.sparse.csr_array(([1.0, 1.0], ([0, 1], [1, 0])), shape=(60_000, 60_000))
    with pytest.raises(MemoryError, match=r"60000 × 60000 entries, which as a dense matrix need 26\.8 GB of memory"):
        call(sparse, sparse)
    if call is match_graphs:
        with pytest.raises(MemoryError, match=r"^a has 30000 × 30000"):
            call(nx.empty_graph(30_000), nx.empty_graph(2))


def test_what_may_be_isomorphic_needs_less_memory():
    rng = np.random.default_rng(0)
    a, order = rng.random((9, 9)), rng.permutation(9)
    alike, other = read_inputs(a, a[np.ix_(order, order)], None), read_inputs(a, rng.random((9, 9)), None)
    assert estimate_memory(alike) < estimate_memory(other)
    assert estimate_memory(other) < estimate_memory(read_inputs(a, a, rng.random((9, 9))))


def test_bad_members_of_a_list_are_named_by_their_place():
    with pytest.raises(ValueError, match=r"a\[1\] must be square"):
        match_graphs([GOOD, np.ones((1, 2))], [GOOD, GOOD])
    with pytest.raises(ValueError, match=r"b\[0\] must have no self loop"):
        match_graphs([GOOD, GOOD], [LOOP, GOOD])
    with pytest.raises(ValueError, match=r"a\[1\] must be finite"):  # also where the graphs change places
        match_graphs([GOOD, _with(math.nan)], [GOOD, np.zeros((2, 2))])
    with pytest.raises(ValueError, match=r"unary\[1\] must be finite"):
        match_graphs([GOOD] * 2, [GOOD] * 2, [np.ones((3, 3)), np.full((3, 3), math.inf)])
    with pytest.raises(ValueError, match="lists of one length; got 2 and 1"):
        match_graphs([GOOD, GOOD], [GOOD])
    with pytest.raises(ValueError, match="one matrix a pair, 1; got 2"):
        match_graphs([GOOD], [GOOD], [GOOD, GOOD])
    with pytest.raises(TypeError, match="unary must be a list"):
        match_graphs([GOOD], [GOOD], GOOD)


@pytest.mark.parametrize("method", [method for method in METHODS if method not in ("auto", "hungarian")])
def test_every_method_refuses_what_is_no_number_and_self_loops(method):
    for name, bad in (("a", _with(math.nan)), ("b", _with(-math.inf)), ("a", LOOP)):
        with pytest.raises(ValueError, match=f"{name} must"):
            match_graphs(**({"a": GOOD, "b": GOOD} | {name: bad}), method=method)
    with pytest.raises(ValueError, match=r"b\[1\] must have no self loop; got 3 at node 1"):
        match_graphs([GOOD, GOOD], [GOOD, LOOP], method=method)
    with pytest.raises(ValueError, match=r"b must be at most 1e\+100 in size; got 1e\+101"):
        match_graphs(GOOD, 1e101 * GOOD, method=method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_method_takes_large_weights(method, kind):
    """Squares leave single precision here, squares of squares double precision."""
    rng = np.random.default_rng(0)
    a = np.triu(rng.random((5, 5)), 1)
    a, order = a + a.T, rng.permutation(5)
    scale = 1e99 if kind == np.float64 else 1e30
    b, truth = a[np.ix_(order, order)], np.argsort(order)
    unary = np.eye(5)[:, order]
    result = match_graphs(*(kind(scale * one) for one in (a, b, unary)), method=method, weight=0.5)
    assert np.isfinite(result.scores).all()
    assert np.isfinite(result.assignment).all()
    assert np.array_equal(result.pairs[:, 1], truth)


def test_formats_mix_and_devices_do_not():
    double, single = torch.from_numpy(GOOD), torch.from_numpy(GOOD).float()
    assert match_graphs(double, single).assignment.dtype == torch.float64
    assert match_graphs(single, GOOD.astype(int)).pairs.dtype == torch.int64
    assert match_graphs(single.bfloat16(), single).assignment.dtype == torch.float32
    with pytest.raises(ValueError, match="one device; got cpu, meta"):
        match_graphs(double, torch.zeros(3, 3, device="meta"))


def test_a_list_of_rows_is_one_graph_and_a_list_of_matrices_many():
    assert match_graphs(GOOD.tolist(), GOOD.tolist()).objective == 0
    many = match_graphs([GOOD.tolist(), [[0.0]]], (GOOD.tolist(), [[0.0]]))
    assert [len(one) for one in many] == [3, 1]


numbers = st.floats(width=64) | st.sampled_from([0.0, -1.0, 1e-300, 1e99, math.nan, math.inf])
anything = st.one_of(
    arrays(np.float64, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4), elements=numbers),
    arrays(np.int8, array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4)),
    st.integers(0, 4).flatmap(lambda n: arrays(np.float64, (n, n), elements=st.floats(-1e99, 1e99))),
    st.integers(0, 4).map(lambda n: np.ones((n, n)) - np.eye(n)),
    st.lists(st.lists(st.integers(0, 1) | st.none(), max_size=3), max_size=3),
    st.none() | st.text(max_size=2) | st.integers() | st.builds(Nothing),
)


def _without_loops(value):
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.shape[0] == value.shape[1]:
        value = value.copy()
        np.fill_diagonal(value, 0)
    return value


@given(a=anything, b=anything, unary=st.none() | anything, method=st.sampled_from(METHODS), partial=st.booleans())
def test_whatever_comes_in_no_nan_comes_out(a, b, unary, method, partial):
    try:
        result = match_graphs(_without_loops(a), _without_loops(b), unary, method=method, partial=partial)
    except (ValueError, TypeError):
        return
    for one in result if isinstance(result, list) else [result]:
        assert np.isfinite(one.scores).all()
        assert np.isfinite(one.assignment).all()
        assert np.isfinite(one.objective)


@given(scale=st.sampled_from([1e-200, 1e-30, 1e-5, 1e5, 1e12]), n=st.integers(2, 5), method=st.sampled_from(METHODS))
def test_the_unit_of_weights_makes_no_nan(scale, n, method):
    rng = np.random.default_rng(n)
    a = np.triu(rng.random((n, n)), 1)
    a = scale * (a + a.T)
    order = rng.permutation(n)
    result = match_graphs(a, a[np.ix_(order, order)], scale * rng.random((n, n)), method=method)
    assert np.isfinite(result.assignment).all()
    assert np.isfinite(result.scores).all()
