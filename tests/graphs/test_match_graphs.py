import time
from contextlib import contextmanager
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array

from quadmatch.delaunay import delaunay
from quadmatch.graphs.match_graphs import METHODS, match_graphs
from quadmatch.graphs.progress import tell_progress
from quadmatch.graphs.quadratic_assignment import quadratic_assignment
from quadmatch.solvers.quadratic.objective import quadratic_objective


def _random_graph(rng, n, *, weighted=False, directed=False):
    matrix = rng.random((n, n)) if weighted else (rng.random((n, n)) < 0.5).astype(float)
    matrix = matrix if directed else np.triu(matrix, 1) + np.triu(matrix, 1).T
    np.fill_diagonal(matrix, 0)
    return matrix


def _measure(a, b, pairs, unary, weight):
    i, k = pairs.T
    misfit = ((a[np.ix_(i, i)] - b[np.ix_(k, k)]) ** 2).sum()
    return weight * misfit - (1 - weight) * (0 if unary is None else unary[i, k].sum())


def _find_best(a, b, unary, weight):
    """The least objective over all matches of the smaller graph."""
    n, m = len(a), len(b)
    if n > m:
        return _find_best(b, a, None if unary is None else unary.T, weight)
    rows = np.arange(n)
    return min(_measure(a, b, np.stack((rows, np.array(p)), 1), unary, weight) for p in permutations(range(m), n))


def _correlate(rng, n, share, correlation):
    first = rng.random((n, n)) < share
    second = rng.random((n, n)) < np.where(first, share + correlation * (1 - share), share * (1 - correlation))
    graphs = [np.triu(one, 1).astype(float) for one in (first, second)]
    order = rng.permutation(n)
    return graphs[0] + graphs[0].T, (graphs[1] + graphs[1].T)[np.ix_(order, order)], np.argsort(order)


def _jitter(rng, n, jitter, noise):
    points, order = rng.random((n, 2)), rng.permutation(n)
    features = rng.normal(size=(n, 8))
    unary = features @ (features + rng.normal(0, noise, features.shape))[order].T
    moved = (points + rng.normal(0, jitter, points.shape))[order]
    a, b = (delaunay(torch.from_numpy(one)).numpy() for one in (points, moved))
    return a, b, unary, np.argsort(order)


@given(
    n=st.integers(1, 6),
    m=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    weighted=st.booleans(),
    directed=st.booleans(),
    known=st.booleans(),
)
def test_tiny_pairs_are_solved_exactly(n, m, seed, weighted, directed, known):
    rng = np.random.default_rng(seed)
    a, b = (_random_graph(rng, size, weighted=weighted, directed=directed) for size in (n, m))
    unary, weight = (rng.random((n, m)), 0.3) if known else (None, 1.0)
    result = match_graphs(a, b, unary, weight=weight)
    assert len(result.pairs) == min(n, m)
    assert result.objective == pytest.approx(_find_best(a, b, unary, weight), abs=1e-9)
    assert result.objective == pytest.approx(_measure(a, b, result.pairs, unary, weight), abs=1e-9)


@given(n=st.integers(2, 40), seed=st.integers(0, 10**6), weighted=st.booleans(), directed=st.booleans())
def test_isomorphic_graphs_are_mapped_onto_each_other(n, seed, weighted, directed):
    rng = np.random.default_rng(seed)
    a = _random_graph(rng, n, weighted=weighted, directed=directed)
    order = rng.permutation(n)
    result = match_graphs(a, a[np.ix_(order, order)])
    assert result.objective == pytest.approx(0, abs=1e-12)
    assert result.scores == pytest.approx(np.ones(n))


@pytest.mark.parametrize(
    "graph", [nx.cycle_graph(24), nx.petersen_graph(), nx.hypercube_graph(4), nx.grid_2d_graph(5, 5)], ids=str
)
def test_graphs_whose_nodes_look_alike_are_mapped(graph):
    nodes = list(graph.nodes)
    shuffled = nx.Graph()
    shuffled.add_nodes_from(np.random.default_rng(0).permutation(len(nodes)))
    shuffled.add_edges_from((nodes.index(u), nodes.index(v)) for u, v in graph.edges)
    assert match_graphs(graph, shuffled).objective == 0


@pytest.mark.parametrize(("n", "correlation"), [(50, 0.9), (100, 0.8)])
def test_correlated_random_graphs_are_matched(n, correlation):
    for seed in range(3):
        a, b, truth = _correlate(np.random.default_rng(seed), n, 0.5, correlation)
        assert (match_graphs(a, b).pairs[:, 1] == truth).mean() >= 0.99


@pytest.mark.parametrize("n", [15, 40, 320])
def test_edges_mend_what_node_similarities_get_wrong(n):
    a, b, unary, truth = _jitter(np.random.default_rng(0), n, 0.2 / n**0.5 / 10, 0.9)
    alone, both = match_graphs(a, b, unary, weight=0.0), match_graphs(a, b, unary)
    assert (alone.pairs[:, 1] == truth).mean() < 0.8
    assert (both.pairs[:, 1] == truth).mean() >= 0.97
    # Neither the unit of the similarities nor that of the edges changes what is found.
    scaled = match_graphs(30 * a, 30 * b, 0.01 * unary)
    assert np.array_equal(scaled.pairs, both.pairs)


def test_a_large_part_is_found_inside_a_larger_graph():
    rng = np.random.default_rng(0)
    b = _random_graph(rng, 330, weighted=True)
    inside = rng.permutation(330)[:310]
    assert np.array_equal(match_graphs(b[np.ix_(inside, inside)], b).pairs[:, 1], inside)


@given(m=st.integers(3, 60), cut=st.integers(1, 30), seed=st.integers(0, 10**6), directed=st.booleans())
@settings(max_examples=30)
def test_a_part_with_weights_is_found_at_no_cost(m, cut, seed, directed):
    rng = np.random.default_rng(seed)
    b = rng.random((m, m))
    b = b if directed else b + b.T
    np.fill_diagonal(b, 0)
    inside = rng.permutation(m)[: max(2, m - cut)]
    result = match_graphs(b[np.ix_(inside, inside)], b)
    assert result.objective == pytest.approx(0, abs=1e-12)
    assert len(set(result.pairs[:, 1].tolist())) == len(inside)


def test_a_part_is_found_from_either_side():
    rng = np.random.default_rng(3)
    b = _random_graph(rng, 30, weighted=True)
    inside = rng.permutation(30)[:18]
    a = b[np.ix_(inside, inside)]
    forth, back = match_graphs(a, b), match_graphs(b, a)
    assert forth.objective == back.objective == 0
    assert np.array_equal(forth.pairs[:, 1], inside)
    assert np.array_equal(back.pairs, np.stack((np.sort(inside), np.argsort(inside)), 1))
    assert np.array_equal(forth.assignment, back.assignment.T)


@given(seed=st.integers(0, 10**6), known=st.booleans(), partial=st.booleans())
@settings(max_examples=15)
def test_batch_mates_never_change_a_match(seed, known, partial):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 26, (5, 2))
    a, b = ([_random_graph(rng, n, weighted=True) for n in side] for side in sizes.T)
    unary = [rng.random((n, m)) for n, m in sizes] if known else None
    together = match_graphs(a, b, unary, partial=partial)
    for place, result in enumerate(together):
        alone = match_graphs(a[place], b[place], unary and unary[place], partial=partial)
        assert np.array_equal(alone.pairs, result.pairs)
        assert np.array_equal(alone.scores, result.scores)
        assert alone.objective == result.objective
        assert result.assignment.shape == tuple(sizes[place])
        assert np.array_equal(np.argwhere(result.assignment), result.pairs)


@given(n=st.integers(1, 6), m=st.integers(1, 6), seed=st.integers(0, 10**6), known=st.booleans())
def test_relabelling_nodes_relabels_the_match(n, m, seed, known):
    rng = np.random.default_rng(seed)
    a, b = _random_graph(rng, n, weighted=True), _random_graph(rng, m, weighted=True)
    unary = rng.random((n, m)) if known else None
    p, q = rng.permutation(n), rng.permutation(m)
    plain = match_graphs(a, b, unary)
    moved = match_graphs(a[np.ix_(p, p)], b[np.ix_(q, q)], None if unary is None else unary[np.ix_(p, q)])
    assert moved.objective == pytest.approx(plain.objective, abs=1e-9)
    if min(n, m) > 2:  # below that, two nodes and one edge can be turned around
        assert np.array_equal(moved.assignment, plain.assignment[np.ix_(p, q)])


def test_every_kind_of_input_gives_the_same_match():
    rng = np.random.default_rng(5)
    a, b = _random_graph(rng, 9, weighted=True), _random_graph(rng, 11, weighted=True)
    expected = match_graphs(a, b)
    assert expected.assignment.dtype == np.float64
    kinds = [
        (torch.from_numpy(a), torch.from_numpy(b)),
        (torch.from_numpy(a).to_sparse(), b),
        (csr_array(a), coo_array(b)),
        (a.tolist(), tuple(map(tuple, b))),
        (nx.from_numpy_array(a), nx.from_numpy_array(b)),
    ]
    for first, second in kinds:
        result = match_graphs(first, second)
        assert np.array_equal(np.asarray(result.pairs), expected.pairs)
        assert result.objective == expected.objective
        tensors = isinstance(first, torch.Tensor)
        for field in (result.pairs, result.scores, result.assignment):
            assert isinstance(field, torch.Tensor if tensors else np.ndarray)
    single = match_graphs(a.astype(np.float32), b.astype(np.float32))
    assert single.assignment.dtype == np.float32
    assert match_graphs(torch.from_numpy(a).half(), torch.from_numpy(b)).scores.dtype == torch.float64
    assert match_graphs(a > 0.5, b > 0.5).assignment.dtype == np.float64


@pytest.mark.parametrize("sizes", [(6, 6), (4, 7), (7, 4), (0, 3)])
@pytest.mark.parametrize("kind", [np.float64, np.float32, torch.float64, torch.float32])
def test_the_assignment_is_one_at_the_pairs_in_the_callers_format(sizes, kind):
    rng = np.random.default_rng(0)
    graphs = [_random_graph(rng, size, weighted=True) for size in sizes]
    as_tensors = isinstance(kind, torch.dtype)
    result = match_graphs(*(torch.from_numpy(one).to(kind) if as_tensors else one.astype(kind) for one in graphs))
    wanted = np.zeros(sizes)
    for row, column in result.pairs.tolist():
        wanted[row, column] = 1
    assert wanted.sum() == min(sizes)
    assert type(result.assignment) is type(result.scores)
    assert result.assignment.dtype == kind
    assert np.array_equal(np.asarray(result.assignment), wanted)
    assert result.assignment is result.assignment


def test_networkx_nodes_count_in_the_order_of_the_graph():
    a = nx.DiGraph([("x", "y", {"weight": 2.0}), ("y", "z")])
    b = nx.DiGraph()
    b.add_nodes_from(["third", "first", "second"])
    b.add_edges_from([("first", "second", {"weight": 2.0}), ("second", "third")])
    result = match_graphs(a, b)
    assert result.pairs.tolist() == [[0, 1], [1, 2], [2, 0]]
    assert result.objective == 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_names_the_truth_where_it_is_easy(method):
    rng = np.random.default_rng(1)
    sizes = [(6, 6), (9, 12), (13, 7), (0, 3), (1, 1), (1, 4)]
    sources, targets, unaries, truths = [], [], [], []
    for n, m in sizes:
        whole = _random_graph(rng, max(n, m), weighted=True)
        p, q = rng.permutation(max(n, m))[:n], rng.permutation(max(n, m))[:m]
        truth = (p[:, None] == q[None, :]).astype(float)
        sources.append(whole[np.ix_(p, p)])
        targets.append(whole[np.ix_(q, q)])
        unaries.append(truth + 0.3 * rng.random((n, m)))
        truths.append(truth)
    results = match_graphs(sources, targets, unaries, method=method, weight=0.1)
    for result, truth in zip(results, truths):
        i, k = result.pairs.T
        assert len(result.pairs) == min(truth.shape)
        # The leading eigenvector of dense weighted graphs blurs nodes of like degree.
        assert truth[i, k].sum() >= (0.7 if method == "spectral" else 1) * len(i)
        assert np.isfinite(result.assignment).all()
        assert (result.assignment.sum(0) <= 1 + 1e-4).all()
        assert (result.assignment.sum(1) <= 1 + 1e-4).all()
        assert ((result.scores >= 0) & (result.scores <= 1 + 1e-6)).all()
        assert np.array_equal(np.sort(i), i)


def test_hungarian_matches_by_similarities_alone():
    rng = np.random.default_rng(2)
    a, b, unary = _random_graph(rng, 8), _random_graph(rng, 10), rng.random((8, 10))
    expected = linear_sum_assignment(-unary)[1]
    assert np.array_equal(match_graphs(a, b, unary, method="hungarian").pairs[:, 1], expected)
    assert np.array_equal(match_graphs(a, b, unary, weight=0.0).pairs[:, 1], expected)


def test_gradients_flow_to_every_input():
    rng = np.random.default_rng(4)
    tensors = [torch.from_numpy(x).requires_grad_() for x in (_random_graph(rng, 5, weighted=True),)]
    tensors += [torch.from_numpy(_random_graph(rng, 7, weighted=True)).requires_grad_()]
    tensors += [torch.from_numpy(rng.random((5, 7))).requires_grad_()]
    result = match_graphs(*tensors, method="frank_wolfe", weight=0.3)
    expected = quadratic_objective(
        result.assignment[None], tensors[2][None], *(t[None] for t in tensors[:2]), weight=0.3
    )
    assert torch.allclose(result.objective, expected[0])
    loss = result.objective + result.scores.sum() + result.assignment.square().sum()
    for gradient in torch.autograd.grad(loss, tensors):
        assert torch.isfinite(gradient).all()
        assert gradient.abs().sum() > 0
    turned = match_graphs(tensors[1], tensors[0], tensors[2].T, method="frank_wolfe", weight=0.3)
    assert torch.allclose(turned.assignment, result.assignment.T, atol=1e-10)
    assert torch.is_grad_enabled()


def test_partial_matches_leave_alone_what_fits_nothing():
    rng = np.random.default_rng(7)
    right = wrong = missed = 0
    for _ in range(5):
        points, strangers = rng.random((20, 2)), rng.random((8, 2))
        moved = np.concatenate((points + rng.normal(0, 0.005, points.shape), strangers[:5]))
        order = rng.permutation(25)
        a = delaunay(torch.from_numpy(np.concatenate((points, strangers[5:])))).numpy()
        b = delaunay(torch.from_numpy(moved[order])).numpy()
        truth = np.concatenate((np.argsort(order)[:20], [-1, -1, -1]))
        unary = 0.25 * rng.normal(size=(23, 25))
        unary[np.arange(20), truth[:20]] += 1
        result = match_graphs(a, b, unary, partial=True)
        good = truth[result.pairs[:, 0]] == result.pairs[:, 1]
        right, wrong, missed = right + good.sum(), wrong + (~good).sum(), missed + 20 - good.sum()
    assert right / (right + wrong) > 0.9
    assert right / (right + missed) > 0.9


@pytest.mark.parametrize("n", [12, 330])
def test_partial_matches_keep_what_agrees_and_nothing_of_what_does_not(n):
    rng = np.random.default_rng(0)
    a = np.kron(np.eye(n // 3), np.ones((3, 3)) - np.eye(3))
    assert len(match_graphs(a, a, partial=True).pairs) == n
    cycle, empty = nx.to_numpy_array(nx.cycle_graph(n)), np.zeros((n, n))
    assert len(match_graphs(cycle, empty, partial=True).pairs) == 0
    weighted = [_random_graph(rng, 12, weighted=True) for _ in range(2)]
    strange = match_graphs(weighted[0], -weighted[1], partial=True)
    assert len(strange.pairs) == 0
    assert strange.objective == 0


def test_more_effort_is_never_worse_and_the_same_call_gives_the_same():
    rng = np.random.default_rng(6)
    a = [_random_graph(rng, n) for n in (9, 14, 22)]
    b = [_random_graph(rng, n) for n in (9, 14, 24)]
    standard, again = match_graphs(a, b), match_graphs(a, b)
    best = match_graphs(a, b, quality="best")
    for one, two, three in zip(standard, again, best):
        assert np.array_equal(one.pairs, two.pairs)
        assert three.objective <= one.objective + 1e-9


def test_graphs_without_nodes_or_edges_have_an_answer():
    assert match_graphs([], []) == []
    none = np.zeros((0, 0))
    for a, b in ((none, none), (none, np.zeros((3, 3))), (np.zeros((3, 3)), none)):
        for method in set(METHODS) - {"hungarian"}:
            result = match_graphs(a, b, method=method)
            assert result.pairs.shape == (0, 2)
            assert result.assignment.shape == (len(a), len(b))
            assert float(result.objective) == 0
    assert len(match_graphs(np.zeros((4, 4)), np.zeros((5, 5))).pairs) == 4
    assert match_graphs(np.zeros((1, 1)), np.zeros((1, 1)), [[-3.0]]).pairs.tolist() == [[0, 0]]


@pytest.mark.parametrize("size", [12, 40])
def test_every_word_for_quality_is_taken_at_both_doors_and_best_is_no_worse(size: int):
    rng = np.random.default_rng(size)
    a, b = np.triu(rng.random((2, size, size)), 1)
    a, b = a + a.T, b + b.T
    matched = [match_graphs(a, b, quality=quality).objective for quality in ("fast", "standard", "best")]
    assert matched == sorted(matched, reverse=True)
    assigned = [
        quadratic_assignment(a, b, options={"quality": quality, "rng": 0}).fun
        for quality in ("fast", "standard", "best")
    ]
    assert assigned[2] <= min(assigned) + 1e-9


@pytest.mark.parametrize(("n", "m"), [(40, 40), (30, 45), (320, 320)])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("partial", [False, True])
def test_without_any_time_the_match_is_whole_and_says_that_it_is_not_done(n, m, known, partial):
    rng = np.random.default_rng(0)
    a, b = _random_graph(rng, n), _random_graph(rng, m)
    unary = rng.random((n, m)) if known else None
    result = match_graphs(a, b, unary, time_limit=0.0, partial=partial)
    assert not result.converged
    assert len(set(result.pairs[:, 1].tolist())) == len(result)
    assert result.pairs.max(initial=0) < m
    if not partial:
        assert len(result) == n


def test_enough_time_changes_nothing():
    rng = np.random.default_rng(1)
    a, b = _random_graph(rng, 30), _random_graph(rng, 30)
    expected, found = match_graphs(a, b), match_graphs(a, b, time_limit=600.0)
    assert found.converged
    assert np.array_equal(found.pairs, expected.pairs)
    done = match_graphs(a, a, time_limit=600.0)
    assert (done.converged, done.objective) == (True, 0)


def test_time_ends_a_search_that_would_take_much_longer():
    rng = np.random.default_rng(2)
    a, b = _random_graph(rng, 150), _random_graph(rng, 150)
    match_graphs(a[:30, :30], b[:30, :30], quality="best")  # what is to be compiled is
    begun = time.process_time()  # which does not run while others have the processor
    short = match_graphs(a, b, quality="best", time_limit=0.05)
    between = time.process_time()
    whole = match_graphs(a, b, quality="best")
    assert not short.converged
    assert between - begun < (time.process_time() - between) / 2
    assert whole.objective <= short.objective


def test_time_ends_linear_assignments_too():
    n = 1000
    none, product = np.zeros((n, n)), np.outer(np.arange(n), np.arange(n))  # what takes them longest
    match_graphs(none[:30, :30], none[:30, :30], product[:30, :30], time_limit=600.0)  # what is to be compiled is
    begun = time.process_time()
    short = match_graphs(none, none, product, time_limit=0.0)
    between = time.process_time()
    match_graphs(none, none, product)
    assert between - begun < (time.process_time() - between) / 2
    assert len(set(short.pairs[:, 1].tolist())) == n


def test_progress_is_told_on_stderr_while_the_search_runs(capsys, monkeypatch):
    monkeypatch.setattr("quadmatch.graphs.progress.INTERVAL", 0.01)
    told, wanted = [], []

    @contextmanager
    def listen(asked):
        """As `tell_progress`, which tells what is done when it is: a short stage may pass between two lines."""
        wanted.append(asked)
        with tell_progress(asked) as hear:
            yield lambda text: told.append(text) or hear(text)

    monkeypatch.setattr("quadmatch.graphs.results.tell_progress", listen)
    rng = np.random.default_rng(3)
    a, b = _random_graph(rng, 60), _random_graph(rng, 60)
    match_graphs(a, b)
    assert " s, " not in capsys.readouterr().err  # where loops are compiled, it says so
    match_graphs(a, b, progress=True)
    assert wanted == [False, True]
    assert "relaxing 1 of 1 pairs at temperature 0.5" in told
    capsys.readouterr()
    with tell_progress(True) as hear:
        hear("relaxing")
        shown = ""
        while " s, relaxing\n" not in shown:
            time.sleep(0.01)
            found = capsys.readouterr()
            shown += found.err
            assert not found.out
