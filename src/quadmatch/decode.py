"""From what a head says to a permutation (Hungarian alone, or discrete Frank–Wolfe on both terms) and to results."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.graph import GraphPair
from quadmatch.matching import Matching, Solution
from quadmatch.result import MatchResult
from quadmatch.solvers.linear.hungarian import hungarian
from quadmatch.solvers.quadratic.frank_wolfe_hard import frank_wolfe_hard
from quadmatch.solvers.quadratic.frank_wolfe_rounds import frank_wolfe_rounds
from quadmatch.solvers.quadratic.objective import quadratic_objective

ITERATIONS, LARGE = 30, 2**17
"""Steps of the discrete constraint, and the entries of an assignment beyond which there are fewer."""
ROUNDS, EXPONENT = 10, 200.0
"""Rounds of the published algorithms at most, and the largest score whose exponential is taken."""
Algorithm = Literal["descent", "paper", "released"]


@torch.no_grad()
def decode(
    matching: Matching,
    mask: Bool[Tensor, "B N M"],
    *,
    weight: float = 0.1,
    threshold: float | None = None,
    iterations: int = 30,
    algorithm: Algorithm = "descent",
    masked_residual: bool = False,
    binary_structure: bool = False,
    by_sizes: bool = False,
) -> Solution:
    """Permutation that lowers `weight ‖A − X B Xᵀ‖² − (1 − weight) Σ S ∘ X`, S the soft assignment.

    Starts from the Hungarian match of S and is never worse than it; `weight=0` is that match itself. With a
    `threshold`, a pair whose assignment is not worth it stays unmatched. The structures are the head's own;
    `binary_structure` compares which edges exist only and `masked_residual` counts only edges of the source
    that are missing in the target. With `by_sizes`, both
    `weight` and `threshold` count less where one graph has more nodes.

    That is the `algorithm` "descent": exact steps, the best permutation met. What was published takes steps
    2/(k+2) in rounds and the last permutation (`frank_wolfe_rounds`): "paper" with exp(scores) in place of S, as
    the paper prints it; "released" on binary structures with the masked residual, as its authors' code does.
    """
    if algorithm not in get_args(Algorithm):
        raise ValueError(f"algorithm must be one of {', '.join(get_args(Algorithm))}, got {algorithm!r}")
    released = algorithm == "released"
    source, target = matching.structure_source, matching.structure_target
    share = compare_sizes(mask) if by_sizes and algorithm == "descent" else None
    if binary_structure or released:
        source, target = (source != 0).to(source.dtype), (target != 0).to(target.dtype)
    if weight == 0:
        unary = matching.assignment if share is None else matching.assignment / share.to(source)[:, None, None]
        best = hungarian(unary, mask, threshold=threshold)
        objective = quadratic_objective(best, matching.assignment, source, target, weight=0.0)
        batch = torch.ones(len(best), dtype=torch.bool, device=best.device)
        return Solution(best, objective, torch.zeros_like(batch, dtype=torch.long), batch)
    masked = masked_residual or released
    if algorithm == "descent":
        problem = matching.assignment, source, target, mask
        options: dict[str, Any] = {"iterations": iterations, "partial": threshold, "masked_residual": masked}
        if share is None or bool((share == 1).all()):
            return frank_wolfe_hard(*problem, weight=weight, **options)
        return _descend_by_sizes(*problem, share, weight, **options)
    # The printed start is X itself, the released one its permutation.
    start = hungarian(matching.assignment, mask) if released else matching.assignment
    unary = matching.assignment if released else matching.unary.double().clamp(max=EXPONENT).exp()
    rounds = min(ROUNDS, iterations)
    found = frank_wolfe_rounds(
        unary, source, target, mask, start=start, weight=weight, outer=rounds, masked_residual=masked
    )
    if threshold is None:
        return found
    return replace(found, assignment=found.assignment * (matching.assignment > threshold))


def compare_sizes(mask: Bool[Tensor, "B N M"]) -> Float[Tensor, " B"]:
    """Nodes of the smaller graph over those of the larger one, of each pair; 1 where one of them is empty."""
    sizes = torch.stack([mask.any(2).sum(1), mask.any(1).sum(1)])
    return (sizes.amin(0) / sizes.amax(0).clamp(min=1)).where(sizes.amin(0) > 0, 1.0)


def _descend_by_sizes(
    unary: Tensor, source: Tensor, target: Tensor, mask: Tensor, share: Tensor, weight: float, **options: Any
) -> Solution:
    """`frank_wolfe_hard` with λ counted `share²` times and `partial` `share` times; the objective is that of λ itself.

    Where one graph has more nodes, the assignment of a node is spread over more of them, and edges run between nodes
    of which only some are matched: what is left of the larger triangulation is not that of the matched nodes.
    """
    share = share.to(unary)[:, None, None]
    scaled = unary / share, source * share.sqrt(), target * share.sqrt()  # The whole objective over `share`.
    found = frank_wolfe_hard(*scaled, mask, weight=weight, **options)
    rows, columns = mask.any(2), mask.any(1)
    # In double precision, so that batch mates and padding do not show; graphs of one size keep what they have alone.
    source, target = (
        edges.double().where(real[:, :, None] & real[:, None, :], 0)
        for edges, real in ((source, rows), (target, columns))
    )
    worth = (unary.double() - (options["partial"] or 0.0)).where(mask, 0)
    chosen, masked = found.assignment.double(), options["masked_residual"]
    objective = quadratic_objective(chosen, worth, source, target, weight=weight, masked_residual=masked)
    return replace(found, objective=objective.to(found.objective).where(share[:, 0, 0] < 1, found.objective))


def limit_iterations(rows: int, columns: int) -> int:
    """Steps for graphs of these sizes: a step is cubic, and thousands of keypoints should not hang."""
    # Pairs so large are matched one by one (`prepared.ENTRIES`), so that no batch mate decides on this.
    share = min(1.0, LARGE / max(rows * columns, 1))
    return max(2, round(ITERATIONS * math.pow(share, 1.5)))


def split_results(pairs: GraphPair, matching: Matching, solution: Solution) -> list[MatchResult]:
    """The result of each pair of a batch, without its padding, as numpy arrays."""
    results, assignment, common = [], matching.assignment, find_common(matching)
    sizes = zip(pairs.source.sizes.tolist(), pairs.target.sizes.tolist())
    for row, (nodes, others) in enumerate(sizes):
        soft = assignment[row, :nodes, :others].cpu().numpy()
        hard = solution.assignment[row, :nodes, :others].cpu().numpy()
        chosen = np.argwhere(hard > 0.5)
        results.append(
            MatchResult(
                pairs=chosen,
                scores=soft[chosen[:, 0], chosen[:, 1]],
                matrix=soft,
                objective=float(solution.objective[row]),
                iterations=int(solution.iterations[row]),
                converged=bool(solution.converged[row]),
                source=pairs.source.adjacency[row, :nodes, :nodes].cpu().numpy(),
                target=pairs.target.adjacency[row, :others, :others].cpu().numpy(),
                matchable=None if common is None else float(common[row]),
            )
        )
    return results


def find_common(matching: Matching) -> Float[Tensor, " B"] | None:
    """How probable it is that there is anything in common: as the head says of the pair, else how sure two nodes are.

    Those that are surest count, of having a partner and of which; None where nodes do not say.
    """
    if matching.common is not None:
        return matching.common
    if matching.matchable is None:
        return None
    source, target = (logits.sigmoid() for logits in matching.matchable)
    sure = (matching.assignment * source[:, :, None] * target[:, None, :]).flatten(1)
    return sure.amax(1) if sure.shape[1] else sure.new_zeros(len(sure))
