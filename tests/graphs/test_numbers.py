"""Numbers of any size and arrays of any kind: the same match, or an error that names the argument."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import quadmatch as qm
from quadmatch.graphs.match_graphs import METHODS

KINDS = {
    "np.matrix": lambda x: x.view(np.matrix),
    "longdouble": lambda x: x.astype(np.longdouble),
    "negative strides": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "masked, but nothing hidden": lambda x: np.ma.array(x, mask=np.zeros(x.shape, bool)),
    "read-only": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "every other row": lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
}


def draw_pair(n: int = 6, m: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n * 100 + m)
    a, b = (np.triu(rng.random((size, size)), 1) for size in (n, m))
    # The similarities are worth more than any edge: they alone say which match is right.
    return a + a.T, b + b.T, np.eye(n, m)[:, ::-1] + 0.1 * rng.random((n, m))


@pytest.fixture(autouse=True)
def refuse_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_any_kind_of_array_gives_the_same_match(method: str, kind: str) -> None:
    a, b, unary = draw_pair()
    expected = qm.match_graphs(a, b, unary, method=method)
    found = qm.match_graphs(*(KINDS[kind](x) for x in (a, b, unary)), method=method)
    assert found.pairs.tolist() == expected.pairs.tolist()
    assert found.objective == expected.objective


@pytest.mark.parametrize("kind", KINDS)
def test_quadratic_assignment_takes_any_kind_of_array(kind: str) -> None:
    a, b, _ = draw_pair()
    expected = qm.quadratic_assignment(a, b, options={"rng": 0})
    found = qm.quadratic_assignment(KINDS[kind](a), KINDS[kind](b), options={"rng": 0})
    assert found.col_ind.tolist() == expected.col_ind.tolist()
    assert found.fun == expected.fun


@pytest.mark.parametrize("power", [-1040, -530, -60, -27, 27, 60, 330])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sizes", [(6, 6), (5, 8), (8, 5)])
def test_units_of_edges_and_similarities_change_no_match(sizes: tuple[int, int], method: str, power: int) -> None:
    a, b, unary = draw_pair(*sizes)
    expected = qm.match_graphs(a, b, unary, method=method)
    found = qm.match_graphs(np.ldexp(a, power), np.ldexp(b, power), unary, method=method)
    assert found.pairs.tolist() == expected.pairs.tolist()
    assert np.isfinite(found.objective)
    assert np.isfinite(found.scores).all()
    found = qm.match_graphs(a, b, np.ldexp(unary, power), method=method)
    assert found.pairs.tolist() == expected.pairs.tolist()


@pytest.mark.parametrize("partial", [False, True])
def test_an_objective_is_in_the_units_of_the_caller(partial: bool) -> None:
    a, b, unary = draw_pair()
    for power in (-40, -12, 12, 40):
        for weight in (0.25, 1.0):
            expected = qm.match_graphs(a, b, unary, weight=weight, partial=partial)
            given = np.ldexp(a, power), np.ldexp(b, power), np.ldexp(unary, 2 * power)
            found = qm.match_graphs(*given, weight=weight, partial=partial)
            assert found.objective == np.ldexp(expected.objective, 2 * power)
            assert found.pairs.tolist() == expected.pairs.tolist()
        found = qm.match_graphs(np.ldexp(a, power), np.ldexp(b, power), partial=partial)
        assert found.objective == np.ldexp(qm.match_graphs(a, b, partial=partial).objective, 2 * power)


def test_a_balance_gives_the_objective_of_the_weight_that_it_stands_for() -> None:
    a, b, unary = draw_pair()
    found = qm.match_graphs(np.ldexp(a, 20), np.ldexp(b, 20), unary)
    chosen = found.pairs[:, 1]
    edges = ((a - b[chosen][:, chosen]) ** 2).sum() * 2.0**40
    nodes = unary[np.arange(len(a)), chosen].sum()
    share = (found.objective + nodes) / (edges + nodes)
    again = qm.match_graphs(np.ldexp(a, 20), np.ldexp(b, 20), unary, weight=share)
    assert again.objective == pytest.approx(found.objective)


@pytest.mark.parametrize("method", ["auto", "tabu", "faq", "2opt", "soft"])
@pytest.mark.parametrize("power", [-1040, -660, -530, 300])
def test_units_change_no_assignment(method: str, power: int) -> None:
    a, b, _ = draw_pair(9, 9)
    expected = qm.quadratic_assignment(a, b, method=method, options={"rng": 0})
    found = qm.quadratic_assignment(np.ldexp(a, power), np.ldexp(b, -60), method=method, options={"rng": 0})
    assert found.col_ind.tolist() == expected.col_ind.tolist()


@pytest.mark.parametrize("method", ["auto", "spectral"])
def test_what_is_masked_is_refused(method: str) -> None:
    a, b, unary = draw_pair()
    hidden = np.ma.masked_greater(a, 0.9)
    with pytest.raises(ValueError, match=r"^a has masked entries.*a\.filled\(0\)"):
        qm.match_graphs(hidden, b, method=method)
    with pytest.raises(ValueError, match=r"^b\[1\] has masked entries"):
        qm.match_graphs([a, a], [b, hidden], method=method)
    with pytest.raises(ValueError, match=r"^unary has masked entries"):
        qm.match_graphs(a, b, np.ma.masked_less(unary, 0.05), method=method)
    with pytest.raises(ValueError, match=r"^B has masked entries"):
        qm.quadratic_assignment(a, hidden)


@pytest.mark.parametrize("form", [list, tuple, lambda rows: [list(row) for row in rows]])
def test_what_is_masked_in_rows_and_in_options_is_refused(form) -> None:
    a, b, _ = draw_pair()
    hidden = np.ma.masked_greater(a, 0.9)
    with pytest.raises(ValueError, match=r"^a has masked entries"):
        qm.match_graphs(form(hidden), b)
    with pytest.raises(ValueError, match=r"^b\[0\] has masked entries"):
        qm.match_graphs([a], [form(hidden)])
    with pytest.raises(ValueError, match=r"^A has masked entries"):
        qm.quadratic_assignment(form(hidden), a)
    start = np.ma.masked_equal(np.eye(len(a)), 1)
    seeds = np.ma.array([[0, 0], [1, 1]], mask=[[False, False], [False, True]])
    for options in ({"P0": form(start)}, {"P0": start}, {"partial_match": form(seeds)}, {"partial_guess": seeds}):
        with pytest.raises(ValueError, match=f"^{next(iter(options))} has masked entries"):
            qm.quadratic_assignment(a, a, options=options)
    shown = np.ma.array(a, mask=np.zeros(a.shape, bool))
    assert qm.match_graphs(form(shown), a).pairs[:, 1].tolist() == list(range(len(a)))


@pytest.mark.parametrize(("edge", "node"), [(1e99, 1e-160), (1e50, 1e-310), (1e40, 1e-250), (0.0, 1e-310)])
@pytest.mark.parametrize(("method", "weight"), [("hungarian", 0.5), ("hungarian", 1.0), ("auto", 0.0)])
def test_similarities_that_alone_count_are_heard_beside_any_edges(method, weight, edge, node) -> None:
    a, b, _ = draw_pair(3, 3)
    unary = np.array([[0.0, 0.1, 1.0], [1.0, 0.0, 0.1], [0.1, 1.0, 0.0]]) * node
    found = qm.match_graphs(edge * a, edge * b, unary, method=method, weight=weight)
    assert found.pairs[:, 1].tolist() == [2, 0, 1]
    assert np.isfinite(found.objective)


@pytest.mark.parametrize("node", [1e-310, 1e-160, 1e99])
def test_where_there_are_no_edges_similarities_of_any_size_count(node) -> None:
    unary = np.array([[0.0, 0.1, 1.0], [1.0, 0.0, 0.1], [0.1, 1.0, 0.0]]) * node
    assert qm.match_graphs(np.zeros((3, 3)), np.zeros((3, 3)), unary, weight=0.5).pairs[:, 1].tolist() == [2, 0, 1]


@pytest.mark.parametrize("node", [1e-310, 1e99])
def test_edges_that_alone_count_are_heard_beside_any_similarities(node) -> None:
    a, _, unary = draw_pair(6, 6)
    order = np.random.default_rng(0).permutation(6)
    b = np.empty_like(a)
    b[np.ix_(order, order)] = a
    found = qm.match_graphs(1e-80 * a, 1e-80 * b, node * unary, weight=1.0)
    assert found.pairs[:, 1].tolist() == order.tolist()
