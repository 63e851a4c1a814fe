"""What a discrete solver hands back."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from quadmatch.graph import Batch


@dataclass(frozen=True)
class Solution(Batch):
    """A batch of assignments, what they are worth and how they were reached."""

    assignment: Float[Tensor, "B N M"]
    """0/1, zero on padding; rows and columns sum to at most one."""
    objective: Float[Tensor, " B"]
    """Of `assignment`; smaller is better."""
    iterations: Int[Tensor, " B"]
    """Steps that each pair took."""
    converged: Bool[Tensor, " B"]
    """True where the solver stopped because nothing changed any more, not because steps ran out."""
