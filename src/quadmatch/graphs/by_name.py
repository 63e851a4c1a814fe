"""The solvers by name on padded batches: pairs of about one size go through a solver together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from quadmatch.graphs.inputs import Inputs, Matrix, to_float64
from quadmatch.graphs.results import Layout, lay_out, split_results
from quadmatch.matching import Solution
from quadmatch.result import MatchResult
from quadmatch.solvers.lawler.operator import NodeSumAffinity
from quadmatch.solvers.lawler.rrwm import rrwm
from quadmatch.solvers.lawler.spectral import spectral
from quadmatch.solvers.linear.hungarian import hungarian
from quadmatch.solvers.linear.sinkhorn import sinkhorn
from quadmatch.solvers.quadratic.frank_wolfe import frank_wolfe
from quadmatch.solvers.quadratic.frank_wolfe_hard import frank_wolfe_hard
from quadmatch.solvers.quadratic.objective import quadratic_gradient, quadratic_objective
from quadmatch.solvers.search.pairs import measure_pairs
from quadmatch.solvers.search.problem import Index, Vector
from quadmatch.solvers.search.strategy import Found
from quadmatch.solvers.search.units import find_exponents

OUTER, INNER = 6, 5
"""Rounds and steps of the soft scheme: twice what training takes, as there is no network to lead it."""
WORK = 2 * 10**8
"""Sum of cubed sizes of pairs that go together, at most: one product of all of them must not keep Ctrl-C waiting."""


@dataclass(frozen=True)
class Group:
    """A padded batch whose objective is ½‖A − XBXᵀ‖² − ½Σ unary∘X: each pair's weight is in its matrices."""

    unary: Float[Tensor, "B N M"]
    source: Float[Tensor, "B N N"]
    target: Float[Tensor, "B M M"]
    mask: Bool[Tensor, "B N M"]


def match_padded(inputs: Inputs, method: str, weight: float | None, temperature: float) -> list[MatchResult]:
    """One result a pair, worked out in double precision; gradients flow through `frank_wolfe` only."""
    if method == "hungarian" and inputs.unaries is None:
        raise ValueError("method 'hungarian' matches by node similarities alone and needs unary; got None")
    layout = lay_out(inputs, weight)
    pairs, turned, _ = layout
    groups = _group(pairs.sizes)
    if method != "frank_wolfe":
        return _match_hard(inputs, layout, groups, method)
    results: dict[int, MatchResult] = {}
    # A temperature is in the caller's units, unless a balance of edges and similarities has none.
    restored = weight is not None or inputs.unaries is None
    factors = layout.units.restore(pairs)
    for places in groups:
        solution = _solve_softly(_gather(inputs, places, layout, factors if restored else None), temperature)
        if not restored:
            scale = torch.from_numpy(factors[places]).to(solution.objective.device)
            solution = replace(solution, objective=solution.objective * scale)
        for row, place in enumerate(places):
            results[place] = _take(inputs, place, row, bool(turned[place]), solution)
    return [results[place] for place in range(len(turned))]


def _group(sizes: Index) -> list[list[int]]:
    """Which pairs go through a solver together: those of about one size, and not too many of them."""
    together: dict[tuple[int, int], list[int]] = {}
    for place, (n, m) in enumerate(sizes.tolist()):
        together.setdefault((n.bit_length(), m.bit_length()), []).append(place)
    groups = []
    for (_, bits), places in together.items():
        most = max(1, WORK >> 3 * bits)
        groups += [places[start : start + most] for start in range(0, len(places), most)]
    return groups


def _count_unary_alone(inputs: Inputs, layout: Layout) -> Layout:
    """The layout in which edges count for nothing: similarities are in units of their own and cannot vanish."""
    peaks = np.array([float(np.abs(to_float64(one)).max(initial=0.0)) for one in inputs.unaries or ()])
    units = layout.units._replace(linears=find_exponents(peaks))
    return layout._replace(pairs=layout.pairs._replace(weights=np.zeros(len(peaks))), units=units)


@torch.no_grad()
def _match_hard(inputs: Inputs, layout: Layout, groups: Sequence[list[int]], method: str) -> list[MatchResult]:
    """Permutations of all groups, measured and handed out as those of the search are."""
    pairs = layout.pairs
    found = Found.begin(pairs)
    found.steps[:] = 1
    counted = _count_unary_alone(inputs, layout) if method == "hungarian" else layout
    for places in groups:
        group = _gather(inputs, places, counted)
        if method == "frank_wolfe_hard":
            solution = frank_wolfe_hard(group.unary, group.source, group.target, group.mask, weight=0.5)
            x = solution.assignment
            found.steps[places], found.converged[places] = solution.iterations.cpu(), solution.converged.cpu()
        else:
            x = hungarian(_relax(group, method), group.mask)
        which, row, column = (one.cpu().numpy() for one in x.nonzero(as_tuple=True))
        found.permutations[pairs.starts[places, 3][which] + row] = column
    measure_pairs(pairs, found.permutations, 0.0, found.objectives, found.scores)
    return split_results(inputs, layout, found)


def _gather(inputs: Inputs, places: Sequence[int], layout: Layout, factors: Vector | None = None) -> Group:
    """Pairs of a group side by side, the smaller graph as the source: its edges are those of matched nodes.

    They are in the units of the layout, or multiplied by the `factors` that bring back those of the caller.
    """
    pairs, turned, units = layout

    def read(matrices: list[Matrix], place: int, exponents: Index) -> Tensor:
        matrix, exponent = matrices[place], -int(exponents[place])
        tensor = matrix if isinstance(matrix, Tensor) else torch.tensor(to_float64(matrix))
        tensor = tensor.to(inputs.device or "cpu", torch.float64)
        # In two steps: what brings the least numbers near one is itself too large for a number.
        return tensor * 2.0 ** (exponent // 2) * 2.0 ** (exponent - exponent // 2) if exponent else tensor

    chosen: list[tuple[Tensor, Tensor, Tensor]] = []
    for place in places:
        a, b = (read(side, place, units.edges) for side in (inputs.sources, inputs.targets))
        share, factor = float(pairs.weights[place]), 1.0 if factors is None else float(factors[place])
        none = inputs.unaries is None
        unary = a.new_zeros(len(a), len(b)) if none else read(inputs.unaries or [], place, units.linears)
        root = (2 * share * factor) ** 0.5
        pair = (unary * (2 * (1 - share) * factor), a * root, b * root)
        chosen.append((pair[0].T, pair[2], pair[1]) if turned[place] else pair)
    rows, columns = max(len(u) for u, _, _ in chosen), max(u.shape[1] for u, _, _ in chosen)

    def stack(which: int, height: int, width: int) -> Tensor:
        return torch.stack([pad(p[which], (0, width - p[which].shape[1], 0, height - len(p[which]))) for p in chosen])

    sizes = torch.tensor([u.shape for u, _, _ in chosen], device=chosen[0][0].device)
    left = torch.arange(rows, device=sizes.device) < sizes[:, :1]
    right = torch.arange(columns, device=sizes.device) < sizes[:, 1:]
    mask = left[:, :, None] & right[:, None, :]
    return Group(stack(0, rows, columns), stack(1, rows, rows), stack(2, columns, columns), mask)


def _relax(group: Group, method: str) -> Float[Tensor, "B N M"]:
    """Scores whose best permutation is the answer."""
    if method == "hungarian" or not group.unary.numel():
        return group.unary
    if bool((group.source < 0).any() | (group.target < 0).any()):
        raise ValueError(f"method {method!r} needs edge weights that are not negative in a and b")
    least = group.unary.where(group.mask, torch.inf).amin((1, 2), keepdim=True)
    nodes = (group.unary / 2 - least / 2).where(group.mask, 0)
    # The scale of affinities is irrelevant to both methods, and squares of very large ones would overflow.
    node, source, target = (x.amax((1, 2), keepdim=True) for x in (nodes, group.source, group.target))
    largest = torch.maximum(node, source * target)
    largest = largest.where(largest > 0, 1)
    edges = (source * target / largest).where(source * target > 0, 1)
    same = group.mask.to(nodes.dtype) / 2
    operator = NodeSumAffinity(
        nodes / largest,
        same,
        0 * same,
        group.source / source.where(source > 0, 1),
        group.target / target.where(target > 0, 1) * edges,
    )
    return rrwm(operator, group.mask) if method == "rrwm" else spectral(operator, group.mask)


def _solve_softly(group: Group, temperature: float) -> Solution:
    matrices = (group.unary, group.source, group.target)
    x = frank_wolfe(
        *matrices, group.mask, weight=0.5, outer=OUTER, inner=INNER, temperature=temperature, step="line_search"
    )
    objective = quadratic_objective(x, *matrices, weight=0.5)
    with torch.no_grad():
        downhill = -quadratic_gradient(x, *matrices, weight=0.5)
        rest = sinkhorn(downhill, group.mask, temperature=temperature, iterations=50) - x
        moved = rest.abs().flatten(1).amax(1) if rest.numel() else rest.new_zeros(len(rest))
    steps = torch.full((len(x),), OUTER * INNER, device=x.device)
    return Solution(x, objective, steps, moved < 0.1)


def _take(inputs: Inputs, place: int, row: int, turned: bool, solution: Solution) -> MatchResult:
    """One pair's soft result, without padding and in the caller's order, number format and kind of array."""
    n, m = len(inputs.sources[place]), len(inputs.targets[place])
    x = solution.assignment[row].T if turned else solution.assignment[row]
    x, objective = x[:n, :m].to(inputs.kind), solution.objective[row].to(inputs.kind)
    chosen = hungarian(x.detach()[None])[0].nonzero() if min(n, m) else x.new_zeros(0, 2, dtype=torch.long)
    rest = int(solution.iterations[row]), bool(solution.converged[row])
    graphs = inputs.sources[place], inputs.targets[place]
    scores = x[chosen[:, 0], chosen[:, 1]]
    if inputs.device is not None:
        return MatchResult(chosen, scores, x, objective, *rest, *graphs)
    best, fit, soft = (one.detach().numpy() for one in (chosen, scores, x))
    return MatchResult(best, fit, soft, float(objective), *rest, *graphs)
