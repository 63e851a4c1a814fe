"""What holds for every solver, whatever it does: the contracts of the package, asked of each in turn."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from quadmatch.solvers.lawler.operator import EdgeAffinity, NodeSumAffinity, list_edges
from quadmatch.solvers.lawler.rrwm import rrwm
from quadmatch.solvers.lawler.spectral import spectral
from quadmatch.solvers.linear.hungarian import hungarian
from quadmatch.solvers.linear.projection import project
from quadmatch.solvers.linear.sinkhorn import sinkhorn
from quadmatch.solvers.quadratic.frank_wolfe import frank_wolfe
from quadmatch.solvers.quadratic.frank_wolfe_hard import frank_wolfe_hard
from quadmatch.solvers.quadratic.objective import quadratic_objective

Solver = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


def make_sums(unary: Tensor, source: Tensor, target: Tensor) -> NodeSumAffinity:
    return NodeSumAffinity(unary, unary, unary.square(), source, target)


def make_edges(unary: Tensor, source: Tensor, target: Tensor) -> EdgeAffinity:
    edges, other_edges = list_edges(source), list_edges(target)
    weights, other_weights = (
        graph.flatten(1).gather(1, found[..., 0].clamp(min=0) * graph.shape[1] + found[..., 1].clamp(min=0))
        for graph, found in ((source, edges), (target, other_edges))
    )
    return EdgeAffinity(unary, (-(weights[:, :, None] - other_weights[:, None, :]).abs()).exp(), edges, other_edges)


def slacken(unary: Tensor, source: Tensor, target: Tensor, mask: Tensor | None) -> Tensor:
    """Sinkhorn with a slack for each node, which comes from its edges; on padding it is no number at all."""
    rows, columns = source.sum(2) / 5, target.sum(2) / 5
    if mask is not None:
        rows, columns = rows.where(mask.any(2), torch.nan), columns.where(mask.any(1), torch.nan)
    return sinkhorn(unary, mask, slack=(rows, columns))


SOFT: dict[str, Solver] = {
    "sinkhorn": lambda u, a, b, mask: sinkhorn(u, mask),
    "sinkhorn, cold": lambda u, a, b, mask: sinkhorn(u, mask, temperature=0.005),
    "sinkhorn, frozen": lambda u, a, b, mask: sinkhorn(u, mask, temperature=0.001),
    "sinkhorn, to tolerance": lambda u, a, b, mask: sinkhorn(u, mask, tolerance=1e-3, iterations=200),
    "sinkhorn, slack": lambda u, a, b, mask: sinkhorn(u, mask, slack=0.5),
    "sinkhorn, slack of pairs": lambda u, a, b, mask: sinkhorn(u, mask, slack=a.sum((1, 2)) / 20),
    "sinkhorn, slack of nodes": slacken,
    "projection": lambda u, a, b, mask: project(u, mask),
    "frank_wolfe": lambda u, a, b, mask: frank_wolfe(u, a, b, mask),
    "frank_wolfe, shifted": lambda u, a, b, mask: frank_wolfe(u, a, b, mask, direction="shifted"),
    "frank_wolfe, line search": lambda u, a, b, mask: frank_wolfe(u, a, b, mask, step="line_search"),
    "spectral": lambda u, a, b, mask: spectral(make_sums(u, a, b), mask),
    "spectral, edges": lambda u, a, b, mask: spectral(make_edges(u, a, b), mask),
    "rrwm": lambda u, a, b, mask: rrwm(make_sums(u, a, b), mask),
    "rrwm, edges": lambda u, a, b, mask: rrwm(make_edges(u, a, b), mask),
}
HARD: dict[str, Solver] = {
    "hungarian": lambda u, a, b, mask: hungarian(u, mask),
    "hungarian, partial": lambda u, a, b, mask: hungarian(u, mask, threshold=0.5),
    "frank_wolfe_hard": lambda u, a, b, mask: frank_wolfe_hard(u, a, b, mask).assignment,
    "frank_wolfe_hard, partial": lambda u, a, b, mask: frank_wolfe_hard(u, a, b, mask, partial=0.5).assignment,
    "frank_wolfe_hard, released": lambda u, a, b, mask: (
        frank_wolfe_hard(u, a, b, mask, masked_residual=True, step="schedule").assignment
    ),
}
EVERY = SOFT | HARD
DIFFERENTIABLE = [name for name in SOFT if "tolerance" not in name]
Problem = tuple[Tensor, Tensor, Tensor]


def make_pair(seed: int, rows: int, columns: int, kind: torch.dtype) -> Problem:
    """One pair: node similarities in [0, 1] and two weighted graphs."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64).to(kind)

    def draw_graph(nodes: int) -> Tensor:
        half = (draw(nodes, nodes) * (draw(nodes, nodes) > 0.5)).triu(1)
        return (half + half.T)[None]

    return draw(1, rows, columns), draw_graph(rows), draw_graph(columns)


def spread(part: Tensor, rows: Tensor, columns: Tensor, shape: tuple[int, int], filling: float) -> Tensor:
    """A pair's matrix with its nodes at other places of a larger one, and something else around them."""
    larger = torch.full((1, *shape), filling, dtype=part.dtype)
    larger[:, rows[:, None], columns[None, :]] = part
    return larger


def embed(problem: Problem, seed: int, extra: int) -> tuple[Problem, Tensor, Tensor, Tensor]:
    """The same pair, its nodes scattered among padding that holds arbitrary numbers."""
    unary, source, target = problem
    rows, columns = unary.shape[1:]
    generator = torch.Generator().manual_seed(seed)
    left = torch.randperm(rows + extra, generator=generator)[:rows].sort().values
    right = torch.randperm(columns + extra, generator=generator)[:columns].sort().values
    mask = torch.zeros(1, rows + extra, columns + extra, dtype=torch.bool)
    mask[:, left[:, None], right[None, :]] = True
    larger = (
        spread(unary, left, right, (rows + extra, columns + extra), 7.0),
        spread(source, left, left, (rows + extra, rows + extra), 0.0),
        spread(target, right, right, (columns + extra, columns + extra), 0.0),
    )
    return larger, mask, left, right


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=4)
@given(
    seed=st.integers(0, 999),
    sizes=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    kind=st.sampled_from([torch.float32, torch.float64]),
)
def test_padding_and_batch_mates_never_change_a_match(
    name: str, seed: int, sizes: tuple[int, int], kind: torch.dtype
) -> None:
    problem = make_pair(seed, *sizes, kind)
    alone = EVERY[name](*problem, None)
    padded, mask, left, right = embed(problem, seed, 2)
    mate, mate_mask, *_ = embed(make_pair(seed + 1, sizes[0] + 1, max(sizes[1] - 1, 0), kind), seed, 1)
    mate_parts = [part[:, : padded[k].shape[1], : padded[k].shape[2]] for k, part in enumerate(mate)]
    grown = [torch.zeros_like(part) for part in padded]
    for empty, part in zip(grown, mate_parts, strict=True):
        empty[:, : part.shape[1], : part.shape[2]] = part * 9
    grown_mask = torch.zeros_like(mask)
    grown_mask[:, : mate_mask.shape[1], : mate_mask.shape[2]] = mate_mask[:, : mask.shape[1], : mask.shape[2]]
    nobody = torch.zeros_like(mask)
    batch = [torch.cat((other, part, other)) for part, other in zip(padded, grown, strict=True)]
    together = EVERY[name](*batch, torch.cat((grown_mask, mask, nobody)))
    tolerance = 1e-5 if kind == torch.float32 else 1e-10
    torch.testing.assert_close(together[1, left][:, right], alone[0], atol=tolerance, rtol=0)
    assert not together[1][~mask[0]].any()
    assert not together[2].any()
    assert together.dtype == kind


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=3)
@given(seed=st.integers(0, 999), sizes=st.tuples(st.integers(1, 7), st.integers(1, 7)))
def test_relabelling_nodes_relabels_the_match(name: str, seed: int, sizes: tuple[int, int]) -> None:
    unary, source, target = make_pair(seed, *sizes, torch.float64)
    left, right = (torch.randperm(size, generator=torch.Generator().manual_seed(seed)) for size in sizes)
    before = EVERY[name](unary, source, target, None)
    relabelled = (unary[:, left][:, :, right], source[:, left][:, :, left], target[:, right][:, :, right])
    after = EVERY[name](*relabelled, None)
    expected = before[:, left][:, :, right]
    if name.startswith("frank_wolfe_hard"):
        objectives = [quadratic_objective(x, *relabelled, weight=0.1) for x in (after, expected)]
        torch.testing.assert_close(*objectives, atol=1e-9, rtol=0)
    else:
        torch.testing.assert_close(after, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("scale", [1.0, 1e4, 0.0])
@pytest.mark.parametrize("sizes", [(6, 6), (3, 7)])
def test_rows_and_columns_sum_to_at_most_one(name: str, scale: float, sizes: tuple[int, int]) -> None:
    for kind in (torch.float32, torch.float64):
        unary, source, target = make_pair(3, *sizes, kind)
        found = EVERY[name](unary * scale, source, target, None)
        assert torch.isfinite(found).all()
        assert (found >= 0).all()
        assert (found.sum(1) <= 1 + 1e-4).all()
        assert (found.sum(2) <= 1 + 1e-4).all()
        if name in HARD:
            assert ((found == 0) | (found == 1)).all()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("shape", [(0, 2, 2), (2, 0, 3), (2, 3, 0), (2, 0, 0), (2, 1, 1), (2, 1, 2), (2, 2, 1)])
def test_degenerate_sizes_have_an_answer(name: str, shape: tuple[int, int, int]) -> None:
    batch, rows, columns = shape
    graphs = torch.zeros(batch, rows, rows), torch.zeros(batch, columns, columns)
    unary = torch.ones(shape)
    nothing = torch.zeros(shape, dtype=torch.bool)
    for mask in (None, nothing):
        found = EVERY[name](unary, *graphs, mask)
        assert found.shape == shape
        assert torch.isfinite(found).all()
    assert not found.any()


@pytest.mark.parametrize("name", EVERY)
def test_repeating_gives_the_same_bits(name: str) -> None:
    problem = make_pair(4, 6, 5, torch.float32)
    assert torch.equal(EVERY[name](*problem, None), EVERY[name](*problem, None))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_right(name: str) -> None:
    unary, source, target = make_pair(5, 3, 4, torch.float64)
    mask = torch.ones(1, 3, 4, dtype=torch.bool)
    mask[:, :, 3] = False

    def solve(values: Tensor) -> Tensor:
        return SOFT[name](values, source, target, mask)

    assert torch.autograd.gradcheck(solve, (unary.requires_grad_(),), atol=1e-4, fast_mode=True)
    (gradient,) = torch.autograd.grad(solve(unary)[0, 0].square().sum(), unary)
    assert gradient[mask].any()
    assert not gradient[~mask].any()


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_stay_finite_beside_an_empty_pair(name: str) -> None:
    unary, source, target = (torch.cat((part, part)) for part in make_pair(6, 3, 4, torch.float32))
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[1] = False
    unary.requires_grad_()
    (gradient,) = torch.autograd.grad(SOFT[name](unary, source, target, mask).square().sum(), unary)
    assert torch.isfinite(gradient).all()
    assert not gradient[1].any()


COMPILE = """
import torch
from quadmatch.solvers.quadratic.frank_wolfe import frank_wolfe
from quadmatch.solvers.linear.projection import project
from quadmatch.solvers.linear.sinkhorn import sinkhorn
from quadmatch.solvers.lawler.operator import NodeSumAffinity
from quadmatch.solvers.lawler.rrwm import rrwm
from quadmatch.solvers.lawler.spectral import spectral

torch.set_num_threads(1)
unary, graph = torch.rand(2, 4, 5), torch.rand(2, 4, 4).round()
other, mask = torch.rand(2, 5, 5).round(), torch.ones(2, 4, 5, dtype=torch.bool)
mask[1, 3:] = False
few = {"outer": 1, "inner": 1, "sinkhorn_iterations": 2}
walk = {"iterations": 1, "tolerance": 0.0}
solvers = (
    lambda u: sinkhorn(u, mask, iterations=4),
    lambda u: sinkhorn(u, temperature=0.005, slack=0.3, iterations=3),
    lambda u: sinkhorn(u, mask, slack=(graph.sum(2) / 5, other.sum(2) / 5), iterations=3),
    lambda u: sinkhorn(u, tolerance=1e-3, iterations=4),
    lambda u: project(u, mask, iterations=4),
    lambda u: frank_wolfe(u, graph, other, mask, **few),
    lambda u: frank_wolfe(u, graph, other, mask, direction="shifted", step="line_search", **few),
    lambda u: spectral(NodeSumAffinity(u, u, u, graph, other), mask, **walk),
    lambda u: rrwm(NodeSumAffinity(u, u, u, graph, other), mask, sinkhorn_iterations=2, **walk),
)
for backend in ("aot_eager",) + 8 * ("eager",):
    solve, *solvers = solvers
    results = []
    for call in (solve, torch.compile(solve, backend=backend, fullgraph=True)):
        scores = unary.clone().requires_grad_()
        soft = call(scores)
        results += [soft, *torch.autograd.grad(soft.square().sum(), scores)]
    torch.testing.assert_close(results[2:], results[:2], atol=1e-4, rtol=1e-4)
"""


def test_tensor_code_compiles_into_one_graph() -> None:
    """Without graph breaks, and with the same values and gradients; apart, because here types are checked."""
    subprocess.run([sys.executable, "-c", COMPILE], check=True, timeout=600)
