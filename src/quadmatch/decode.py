"""From what a head says to a permutation: Hungarian alone, or discrete Frank–Wolfe on both terms."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool
from torch import Tensor

from quadmatch.matching import Matching
from quadmatch.solvers.frank_wolfe import frank_wolfe_hard, quadratic_objective
from quadmatch.solvers.hungarian import hungarian
from quadmatch.solvers.solution import Solution

ITERATIONS, LARGE = 30, 2**17
"""Steps of the discrete constraint, and the entries of an assignment beyond which there are fewer."""


@torch.no_grad()
def decode(
    matching: Matching,
    mask: Bool[Tensor, "B N M"],
    *,
    weight: float = 0.1,
    threshold: float | None = None,
    iterations: int = 30,
    masked_residual: bool = False,
    binary_structure: bool = False,
) -> Solution:
    """Permutation that lowers `weight ‖A − X B Xᵀ‖² − (1 − weight) Σ S ∘ X`, S the soft assignment.

    Starts from the Hungarian match of S and is never worse than it; `weight=0` is that match itself.
    With a `threshold`, a pair whose assignment is not worth it stays unmatched. The structures are the
    head's own (the paper); `binary_structure` compares which edges exist only and `masked_residual`
    counts only edges of the source that are missing in the target (together: the released code).
    """
    source, target = matching.structure_source, matching.structure_target
    if binary_structure:
        source, target = (source != 0).to(source.dtype), (target != 0).to(target.dtype)
    if weight == 0:
        best = hungarian(matching.assignment, mask, threshold=threshold)
        objective = quadratic_objective(best, matching.assignment, source, target, weight=0.0)
        batch = torch.ones(len(best), dtype=torch.bool, device=best.device)
        return Solution(best, objective, torch.zeros_like(batch, dtype=torch.long), batch)
    return frank_wolfe_hard(
        matching.assignment,
        source,
        target,
        mask,
        weight=weight,
        iterations=iterations,
        partial=threshold,
        masked_residual=masked_residual,
    )


def limit_iterations(rows: int, columns: int) -> int:
    """Steps for graphs of these sizes: a step is cubic, and thousands of keypoints should not hang."""
    # Pairs so large are matched one by one (`subjects.ENTRIES`), so that no batch mate decides on this.
    share = min(1.0, LARGE / max(rows * columns, 1))
    return max(2, round(ITERATIONS * math.pow(share, 1.5)))
