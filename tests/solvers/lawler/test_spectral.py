from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import fields, replace

import pygmtools
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from quadmatch.solvers.lawler.operator import AffinityOperator, EdgeAffinity, NodeSumAffinity, list_edges
from quadmatch.solvers.lawler.rrwm import rrwm
from quadmatch.solvers.lawler.spectral import spectral
from quadmatch.solvers.linear.hungarian import hungarian
from quadmatch.solvers.linear.sinkhorn import sinkhorn


def draw(seed: int, *shape: int, kind: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=kind)


def make_graphs(seed: int, batch: int, nodes: int) -> Tensor:
    """Weighted, directed, of different numbers of edges."""
    weights = draw(seed, batch, nodes, nodes)
    kept = draw(seed + 1, batch, nodes, nodes) > torch.linspace(0.3, 0.7, batch)[:, None, None]
    return (weights * kept).diagonal_scatter(torch.zeros(batch, nodes), dim1=1, dim2=2)


def make_edge_affinity(seed: int, batch: int = 2, rows: int = 4, columns: int = 5) -> EdgeAffinity:
    source, target = make_graphs(seed, batch, rows), make_graphs(seed + 5, batch, columns)
    edges, other_edges = list_edges(source), list_edges(target)
    affinity = draw(seed + 10, batch, edges.shape[1], other_edges.shape[1])
    return EdgeAffinity(draw(seed + 11, batch, rows, columns), affinity, edges, other_edges)


def make_node_sums(seed: int, batch: int = 2, rows: int = 4, columns: int = 5) -> NodeSumAffinity:
    unary, same, crossed = (draw(seed + k, batch, rows, columns) for k in range(3))
    return NodeSumAffinity(
        unary, same, crossed, make_graphs(seed + 3, batch, rows), make_graphs(seed + 8, batch, columns)
    )


def build_matrix(operator: AffinityOperator, b: int) -> Tensor:
    """Lawler's matrix, entry by entry from its definition: rows and columns are the matches (i, k)."""
    rows, columns = operator.unary.shape[1:]
    matrix = torch.zeros(rows, columns, rows, columns, dtype=torch.float64)
    for i in range(rows):
        for k in range(columns):
            matrix[i, k, i, k] += operator.unary[b, i, k]
    if isinstance(operator, EdgeAffinity):
        for e, (i, j) in enumerate(operator.source_edges[b].tolist()):
            for f, (k, last) in enumerate(operator.target_edges[b].tolist()):
                if i >= 0 <= k:
                    matrix[i, k, j, last] += operator.edge[b, e, f]
    if isinstance(operator, NodeSumAffinity):
        p, q = operator.same[b], operator.crossed[b]
        for i, j in operator.source[b].nonzero().tolist():
            for k, last in operator.target[b].nonzero().tolist():
                weight = operator.source[b, i, j] * operator.target[b, k, last]
                matrix[i, k, j, last] += weight * (p[i, k] + q[i, last] + q[j, k] + p[j, last])
    return matrix.reshape(rows * columns, rows * columns)


@pytest.mark.parametrize("make", [make_edge_affinity, make_node_sums])
@pytest.mark.parametrize("sizes", [(4, 5), (5, 3), (1, 4)])
def test_products_are_those_of_the_matrix(make: functools.partial[AffinityOperator], sizes: tuple[int, int]) -> None:
    operator = make(0, 3, *sizes)
    v = draw(20, 3, *sizes)
    with_gradient = operator(v.clone().requires_grad_())
    for b in range(3):
        matrix = build_matrix(operator, b)
        torch.testing.assert_close(operator(v)[b].flatten(), matrix @ v[b].flatten())
        torch.testing.assert_close(with_gradient[b].flatten(), matrix @ v[b].flatten())
        torch.testing.assert_close(operator.score(v)[b], v[b].flatten() @ matrix @ v[b].flatten())


@pytest.mark.parametrize("make", [make_edge_affinity, make_node_sums])
def test_each_channel_is_multiplied_as_if_alone(make: functools.partial[AffinityOperator]) -> None:
    operator, v = make(0, 3, 4, 5), draw(23, 3, 6, 4, 5)
    for values in (v, v.clone().requires_grad_()):
        together, scores = operator(values), operator.score(values)
        for c in range(6):
            torch.testing.assert_close(together[:, c], operator(values[:, c]), atol=1e-14, rtol=0)
            torch.testing.assert_close(scores[:, c], operator.score(values[:, c]))
    assert operator(v[:, :0]).shape == (3, 0, 4, 5)


@pytest.mark.parametrize("make", [make_edge_affinity, make_node_sums])
@pytest.mark.parametrize("channels", [(), (2,)])
def test_gradient_reaches_assignments_and_affinities(
    make: functools.partial[AffinityOperator], channels: tuple[int, ...]
) -> None:
    operator, v = make(0, 2, 3, 4), draw(24, 2, *channels, 3, 4)
    floating = [field.name for field in fields(operator) if getattr(operator, field.name).is_floating_point()]
    inputs = tuple(getattr(operator, name).requires_grad_() for name in floating)

    def multiply(v: Tensor, *values: Tensor) -> Tensor:
        return replace(operator, **dict(zip(floating, values, strict=True)))(v)

    assert torch.autograd.gradcheck(multiply, (v.requires_grad_(), *inputs))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_compiled_and_dense_products_agree(kind: torch.dtype) -> None:
    operator = make_edge_affinity(1, 3, 9, 7).to(kind)
    v = draw(21, 3, 2, 9, 7, kind=kind).transpose(2, 3).contiguous().transpose(2, 3)
    assert operator.source_edges.dtype == torch.long
    torch.testing.assert_close(operator(v), operator._multiply_dense(v))


def test_edges_are_listed_in_order() -> None:
    graph = torch.tensor([[[0.0, 2.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    edges = [[[0, 1], [-1, -1]], [[0, 1], [1, 0]], [[-1, -1], [-1, -1]]]
    assert list_edges(graph).tolist() == edges
    assert list_edges(torch.zeros(2, 3, 3)).shape == (2, 0, 2)


def spell_out(sums: NodeSumAffinity) -> EdgeAffinity:
    """The same affinity, listed for each pair of edges."""
    edges, other_edges = list_edges(sums.source), list_edges(sums.target)
    (i, j), (k, last) = (found.clamp(min=0).unbind(-1) for found in (edges, other_edges))
    which = torch.arange(len(i))[:, None, None]

    def between(values: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        return values[which, rows[:, :, None], columns[:, None, :]]

    p, q = sums.same, sums.crossed
    affinity = between(p, i, k) + between(q, i, last) + between(q, j, k) + between(p, j, last)
    weights = sums.source[which[..., 0], i, j][:, :, None] * sums.target[which[..., 0], k, last][:, None, :]
    return EdgeAffinity(sums.unary, weights * affinity, edges, other_edges)


def test_both_forms_are_one_operator() -> None:
    sums = make_node_sums(6, 3, 5, 4)
    v = draw(22, 3, 5, 4)
    torch.testing.assert_close(spell_out(sums)(v), sums(v))


def test_spectral_is_the_leading_eigenvector() -> None:
    sums = make_node_sums(2, 3)
    symmetric = NodeSumAffinity(
        sums.unary,
        sums.same,
        sums.crossed,
        sums.source + sums.source.transpose(1, 2),
        sums.target + sums.target.transpose(1, 2),
    )
    for operator in (symmetric, spell_out(symmetric)):
        found = spectral(operator, iterations=2000, tolerance=1e-13)
        for b in range(3):
            leading = torch.linalg.eigh(build_matrix(operator, b)).eigenvectors[:, -1].abs()
            torch.testing.assert_close(found[b].flatten(), leading / leading.sum(), atol=1e-8, rtol=0)


def make_delaunay_like_pairs(seed: int, batch: int, nodes: int) -> tuple[EdgeAffinity, Tensor]:
    """Neighbour graphs of noisy copies of points, affinity by length of edges; pygmtools' matrix beside."""
    points = draw(seed, batch, nodes, 2, kind=torch.float32)
    moved = points + 0.01 * draw(seed + 1, batch, nodes, 2, kind=torch.float32)
    found = []
    for places in (points, moved):
        distance = torch.cdist(places, places)
        near = distance < distance.sort(-1).values[:, :, 4:5]
        graph = ((near | near.transpose(1, 2)) * distance).contiguous()
        edges = list_edges(graph)
        start, end = edges.clamp(min=0).unbind(-1)
        length = graph.flatten(1).gather(1, start * nodes + end)[..., None]
        found.append((edges, length, (edges[..., 0] >= 0).sum(1)))
    (edges, length, count), (other_edges, other_length, other_count) = found
    affinity = torch.exp(-((length - other_length.transpose(1, 2)) ** 2) / 0.01)
    sizes = torch.full((batch,), nodes)
    matrix = pygmtools.utils.build_aff_mat(
        None,
        length,
        edges.clamp(min=0),
        None,
        other_length,
        other_edges.clamp(min=0),
        sizes,
        count,
        sizes,
        other_count,
        edge_aff_fn=functools.partial(pygmtools.utils.gaussian_aff_fn, sigma=0.01, backend="pytorch"),
        backend="pytorch",
    )
    return EdgeAffinity(torch.zeros(batch, nodes, nodes), affinity, edges, other_edges), matrix


def test_spectral_and_rrwm_find_what_pygmtools_finds() -> None:
    operator, matrix = make_delaunay_like_pairs(3, 6, 12)
    sizes = torch.full((6,), 12)
    theirs = pygmtools.sm(matrix, sizes, sizes, max_iter=200, backend="pytorch")
    torch.testing.assert_close(
        spectral(operator, iterations=200, tolerance=0.0), theirs / theirs.sum((1, 2), keepdim=True), atol=1e-4, rtol=0
    )
    theirs = pygmtools.rrwm(matrix, sizes, sizes, backend="pytorch")
    ours = rrwm(operator, tolerance=0.0)
    torch.testing.assert_close(ours, theirs, atol=1e-2, rtol=0)
    score, expected = operator.score(hungarian(ours)).mean(), operator.score(hungarian(theirs)).mean()
    assert score >= 0.99 * expected
    early = rrwm(operator)
    assert operator.score(hungarian(early)).mean() >= 0.99 * expected


def test_rrwm_finds_copies() -> None:
    operator, _ = make_delaunay_like_pairs(4, 8, 10)
    right = hungarian(rrwm(operator)).diagonal(dim1=1, dim2=2).mean()
    assert right > 0.8


@settings(max_examples=10)
@given(st.integers(0, 99), st.sampled_from([spectral, rrwm]))
def test_what_comes_out_sums_to_one(seed: int, solver: functools.partial[Tensor]) -> None:
    soft = solver(make_edge_affinity(seed))
    assert (soft >= 0).all()
    torch.testing.assert_close(soft.sum((1, 2)), torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("solver", [spectral, rrwm])
def test_nothing_to_prefer_stays_even(solver: functools.partial[Tensor]) -> None:
    none = torch.full((2, 0, 2), -1)
    operator = EdgeAffinity(torch.zeros(2, 3, 4), torch.zeros(2, 0, 0), none, none)
    torch.testing.assert_close(solver(operator), torch.full((2, 3, 4), 1 / 12))


@pytest.mark.parametrize("solver", [spectral, rrwm])
@pytest.mark.parametrize("wrong", [{"iterations": -1}, {"tolerance": -1.0}])
def test_options_must_make_sense(solver: functools.partial[Tensor], wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        solver(make_edge_affinity(0), **wrong)


@pytest.mark.parametrize("wrong", [{"alpha": 2.0}, {"beta": 0.0}])
def test_rrwm_options_must_make_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        rrwm(make_edge_affinity(0), **wrong)


def test_the_unit_of_affinities_changes_no_eigenvector() -> None:
    sums = make_node_sums(3)
    small = replace(sums, **{one.name: 1e-4 * getattr(sums, one.name) for one in fields(sums)[:3]})
    torch.testing.assert_close(spectral(small), spectral(sums), atol=1e-6, rtol=0)


class Counted(EdgeAffinity):
    """Counts its products."""

    products = 0

    def __call__(self, v: Tensor) -> Tensor:
        Counted.products += 1
        return super().__call__(v)


def count_products(operator: EdgeAffinity) -> Counted:
    Counted.products = 0
    return Counted(*(getattr(operator, field.name) for field in fields(operator)))


def walk_plainly(
    matrix: Tensor, mask: Tensor, alpha: float, beta: float, steps: int, least: float
) -> tuple[Tensor, int]:
    """A reweighted random walk of one pair on the matrix of all affinities, and its steps."""
    v = mask / mask.sum()
    for step in range(1, steps + 1):
        walked = (matrix @ v.flatten()).view_as(v) * mask
        walked = walked / walked.sum()
        jumped = sinkhorn((walked / walked.max())[None], mask[None].bool(), temperature=1 / beta, iterations=20)[0]
        moved = alpha * jumped + (1 - alpha) * walked
        before, v = v, moved / moved.sum()
        if float((v - before).square().sum() / before.square().sum()) ** 0.5 < least:
            return v, step
    return v, steps


def iterate_plainly(matrix: Tensor, mask: Tensor, steps: int, least: float) -> tuple[Tensor, int]:
    """The power iteration of one pair, and its steps."""
    v = mask / mask.square().sum().sqrt()
    for step in range(1, steps + 1):
        moved = (matrix @ v.flatten()).view_as(v) * mask
        before, v = v, moved / moved.square().sum().sqrt()
        if float((v - before).square().sum()) ** 0.5 < least:
            return v / v.sum(), step
    return v / v.sum(), steps


def make_masks(batch: int, rows: int, columns: int) -> Tensor:
    """Pairs with ever fewer columns."""
    masks = torch.ones(batch, rows, columns, dtype=torch.float64)
    for b in range(batch):
        masks[b, :, columns - b :] = 0
    return masks


@pytest.mark.parametrize(
    "options",
    [
        *({}, {"alpha": 0.5}, {"alpha": 0.0}, {"alpha": 1.0, "iterations": 7}, {"beta": 5.0}, {"tolerance": 1e-2}),
        *({"beta": 0.5}, {"tolerance": 0.0}, {"iterations": 1}, {"iterations": 0}),
    ],
)
def test_a_walk_takes_the_steps_that_are_described(options: dict[str, float]) -> None:
    given = {"alpha": 0.2, "beta": 30.0, "iterations": 50, "tolerance": 1e-5} | options
    for steps in compare_steps(rrwm, walk_plainly, options, given):
        assert min(steps) < 50 or not given["tolerance"]


@pytest.mark.parametrize("options", [{}, {"tolerance": 1e-2}, {"tolerance": 0.0}, {"iterations": 1}, {"iterations": 0}])
def test_a_power_iteration_takes_the_steps_that_are_described(options: dict[str, float]) -> None:
    given = {"iterations": 50, "tolerance": 1e-5} | options
    assert len(list(compare_steps(spectral, iterate_plainly, options, given))) == 3


def compare_steps(
    solve: Callable[..., torch.Tensor],
    solve_plainly: Callable[..., tuple[torch.Tensor, int]],
    options: dict[str, float],
    given: dict[str, float],
) -> Iterator[list[int]]:
    """A batch must be what its pairs are alone, in as many products as the slowest takes; the steps of each pair."""
    for seed in range(3):
        operator, mask = count_products(make_edge_affinity(seed, 3)), make_masks(3, 4, 5)
        found, steps = solve(operator, mask.bool(), **options), []
        for b in range(3):
            expected, made = solve_plainly(build_matrix(operator, b), mask[b], *given.values())
            torch.testing.assert_close(found[b], expected, atol=1e-9, rtol=0)
            steps.append(made)
        assert Counted.products == max(steps)
        yield steps


def test_ends_meet_where_both_are_matched() -> None:
    operator, v = make_edge_affinity(0, 3), draw(30, 3, 4, 5)
    met = operator.meet(v)
    for b in range(3):
        for e, (i, j) in enumerate(operator.source_edges[b].tolist()):
            for f, (k, last) in enumerate(operator.target_edges[b].tolist()):
                expected = v[b, i, k] * v[b, j, last] if i >= 0 <= k else 0.0
                assert float(met[b, e, f]) == pytest.approx(float(expected))
