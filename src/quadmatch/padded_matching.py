"""The solvers by name on padded batches: pairs of about one size go through a solver together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from quadmatch.inputs import LARGEST, Inputs, Matrix
from quadmatch.result import MatchResult
from quadmatch.search.pairs import BALANCE
from quadmatch.solvers.affinity_operator import NodeSumAffinity
from quadmatch.solvers.frank_wolfe import (
    frank_wolfe,
    frank_wolfe_hard,
    quadratic_gradient,
    quadratic_objective,
)
from quadmatch.solvers.hungarian import hungarian
from quadmatch.solvers.rrwm import rrwm
from quadmatch.solvers.sinkhorn import sinkhorn
from quadmatch.solvers.solution import Solution
from quadmatch.solvers.spectral import spectral

OUTER, INNER = 6, 5
"""Rounds and steps of the soft scheme: twice what training takes, as there is no network to lead it."""


@dataclass(frozen=True)
class Group:
    """A padded batch whose objective is ½‖A − XBXᵀ‖² − ½Σ unary∘X: each pair's weight is in its matrices."""

    unary: Float[Tensor, "B N M"]
    source: Float[Tensor, "B N N"]
    target: Float[Tensor, "B M M"]
    mask: Bool[Tensor, "B N M"]


def match_padded(inputs: Inputs, method: str, weight: float | None, temperature: float) -> list[MatchResult]:
    """One result a pair; gradients flow through `frank_wolfe` only."""
    if method == "hungarian" and inputs.unaries is None:
        raise ValueError("method 'hungarian' matches by node similarities alone and needs unary; got None")
    sources, targets = _read(inputs, inputs.sources, "a"), _read(inputs, inputs.targets, "b")
    unaries = None if inputs.unaries is None else _read(inputs, inputs.unaries, "unary")
    groups: dict[tuple[int, int], list[int]] = {}
    for place, (a, b) in enumerate(zip(sources, targets)):
        groups.setdefault((len(a).bit_length(), len(b).bit_length()), []).append(place)
    results: dict[int, MatchResult] = {}
    for places in groups.values():
        # The smaller graph is the source, so that the objective compares edges of matched nodes only.
        turned = [len(sources[place]) > len(targets[place]) for place in places]
        group = _gather(places, turned, sources, targets, unaries, weight)
        solution, scores = _solve(group, method, temperature)
        for row, place in enumerate(places):
            results[place] = _take(inputs, place, row, turned[row], solution, scores)
    return [results[place] for place in range(len(sources))]


def _read(inputs: Inputs, matrices: Sequence[Matrix], name: str) -> list[Tensor]:
    """The matrices as tensors of one format on one device, checked."""
    tensors = []
    for place, matrix in enumerate(matrices):
        tensor = torch.as_tensor(matrix).to(inputs.device or "cpu", inputs.kind)
        spot = name if inputs.single else f"{name}[{place}]"
        if tensor.numel() and not bool((tensor.detach().abs() <= min(LARGEST, 1e15)).all()):
            raise ValueError(
                f"{spot} must be finite and at most 1e15 in size; got {tensor.detach().abs().max():g}"
            )
        if name != "unary" and bool(tensor.detach().diagonal().any()):
            raise ValueError(f"{spot} must have no self loop; what a node is like by itself belongs in unary")
        tensors.append(tensor)
    return tensors


def _gather(
    places: Sequence[int],
    turned: Sequence[bool],
    sources: Sequence[Tensor],
    targets: Sequence[Tensor],
    unaries: Sequence[Tensor] | None,
    weight: float | None,
) -> Group:
    chosen: list[tuple[Tensor, Tensor, Tensor]] = []
    for place, turn in zip(places, turned):
        a, b = sources[place], targets[place]
        unary = a.new_zeros(len(a), len(b)) if unaries is None else unaries[place]
        share = _balance(a, b, unary) if weight is None else weight
        root = (2 * share) ** 0.5
        pair = (unary * (2 * (1 - share)), a * root, b * root)
        chosen.append((pair[0].T, pair[2], pair[1]) if turn else pair)
    rows, columns = max(len(u) for u, _, _ in chosen), max(u.shape[1] for u, _, _ in chosen)

    def stack(which: int, height: int, width: int) -> Tensor:
        return torch.stack(
            [pad(p[which], (0, width - p[which].shape[1], 0, height - len(p[which]))) for p in chosen]
        )

    sizes = torch.tensor([u.shape for u, _, _ in chosen], device=chosen[0][0].device)
    left = torch.arange(rows, device=sizes.device) < sizes[:, :1]
    right = torch.arange(columns, device=sizes.device) < sizes[:, 1:]
    mask = left[:, :, None] & right[:, None, :]
    return Group(stack(0, rows, columns), stack(1, rows, rows), stack(2, columns, columns), mask)


@torch.no_grad()
def _balance(a: Tensor, b: Tensor, unary: Tensor) -> float:
    """The weight at which edges and similarities matter alike, as in the search."""
    if not unary.numel():
        return 1.0
    best = float((hungarian(unary[None])[0] * unary).double().sum()) / min(unary.shape)
    gain = best - float(unary.double().mean())
    degree = float(a.double().square().sum() / len(a) + b.double().square().sum() / len(b)) / 2
    if gain <= 0:
        return 1.0
    ratio = BALANCE * gain / (4 * degree) if degree > 0 else 1.0
    return ratio / (1 + ratio)


def _solve(group: Group, method: str, temperature: float) -> tuple[Solution, Float[Tensor, "B N M"]]:
    """The solution of each pair of a group, and scores at its matches."""
    if method == "frank_wolfe":
        soft = _solve_softly(group, temperature)
        return soft, soft.assignment
    if method == "frank_wolfe_hard":
        solution = frank_wolfe_hard(group.unary, group.source, group.target, group.mask, weight=0.5)
    else:
        solution = _round(group, _relax(group, method))
    return solution, _agree(group, solution.assignment)


def _solve_softly(group: Group, temperature: float) -> Solution:
    matrices = (group.unary, group.source, group.target)
    x = frank_wolfe(
        *matrices,
        group.mask,
        weight=0.5,
        outer=OUTER,
        inner=INNER,
        temperature=temperature,
        step="line_search",
    )
    objective = quadratic_objective(x, *matrices, weight=0.5)
    with torch.no_grad():
        downhill = -quadratic_gradient(x, *matrices, weight=0.5)
        rest = sinkhorn(downhill, group.mask, temperature=temperature, iterations=50) - x
        moved = rest.abs().flatten(1).amax(1) if rest.numel() else rest.new_zeros(len(rest))
    steps = torch.full((len(x),), OUTER * INNER, device=x.device)
    return Solution(x, objective, steps, moved < 0.1)


def _relax(group: Group, method: str) -> Float[Tensor, "B N M"]:
    """Scores whose best permutation is the answer."""
    if method == "hungarian":
        return group.unary.detach()
    if bool((group.source < 0).any() | (group.target < 0).any()):
        raise ValueError(f"method {method!r} needs edge weights that are not negative in a and b")
    shifted = group.unary.detach() / 2
    least = (
        shifted.where(group.mask, torch.inf).flatten(1).amin(1)
        if shifted.numel()
        else shifted.new_zeros(len(shifted))
    )
    shifted = (shifted - least[:, None, None]).where(group.mask, 0)
    same = group.mask.to(shifted.dtype) / 2
    operator = NodeSumAffinity(shifted, same, 0 * same, group.source.detach(), group.target.detach())
    return rrwm(operator, group.mask) if method == "rrwm" else spectral(operator, group.mask)


def _round(group: Group, scores: Float[Tensor, "B N M"]) -> Solution:
    x = hungarian(scores, group.mask)
    group = replace(group, unary=group.unary.detach())
    objective = quadratic_objective(x, group.unary, group.source.detach(), group.target.detach(), weight=0.5)
    count = torch.ones(len(x), dtype=torch.long, device=x.device)
    return Solution(x, objective, count, count > 0)


def _agree(group: Group, x: Float[Tensor, "B N M"]) -> Float[Tensor, "B N M"]:
    """At each match, the share of the weight of edges to other matched nodes on which both graphs agree."""
    source, found = group.source.detach(), x @ group.target.detach() @ x.transpose(1, 2)
    matched = x.sum(2)
    both = matched[:, :, None] * matched[:, None, :]
    size, gap = (source.abs() + found.abs()) * both, (source - found).abs() * both
    whole = size.sum(2) + size.sum(1)
    share = 1 - (gap.sum(2) + gap.sum(1)) / whole.where(whole > 0, 1)
    return x * share[:, :, None]


def _take(
    inputs: Inputs, place: int, row: int, turned: bool, solution: Solution, scores: Float[Tensor, "B N M"]
) -> MatchResult:
    """One pair's result, without padding and in the caller's order."""
    n, m = len(inputs.sources[place]), len(inputs.targets[place])
    x, worth = (one[row].T if turned else one[row] for one in (solution.assignment, scores))
    x, worth = x[:n, :m], worth[:n, :m]
    chosen = hungarian(x.detach()[None])[0].nonzero() if min(n, m) else x.new_zeros(0, 2, dtype=torch.long)
    rated = worth[chosen[:, 0], chosen[:, 1]]
    objective: float | Tensor = solution.objective[row]
    if inputs.device is None:
        return MatchResult(
            chosen.numpy(),
            rated.detach().numpy(),
            x.detach().numpy(),
            float(objective),
            int(solution.iterations[row]),
            bool(solution.converged[row]),
            inputs.sources[place],
            inputs.targets[place],
        )
    return MatchResult(
        chosen,
        rated,
        x,
        objective,
        int(solution.iterations[row]),
        bool(solution.converged[row]),
        inputs.sources[place],
        inputs.targets[place],
    )
