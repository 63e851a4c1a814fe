"""What flows through a method: features in, a soft matching out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quadmatch.graph import Batch, GraphPair


@dataclass(frozen=True)
class Features(Batch):
    """What the image says about each node of a padded batch of graphs; zero on padding."""

    local: Float[Tensor, "B N C"]
    """relu4_2 at the node."""
    edge: Float[Tensor, "B N C2"]
    """relu5_1 at the node."""
    whole: Float[Tensor, "B C3"]
    """Of the object."""

    def select(self, objects: Int[Tensor, " P"], nodes: Int[Tensor, "P K"]) -> Features:
        """Rows `objects`, of each the nodes `nodes`; a negative node index gives a row of zeros."""
        present = (nodes >= 0)[..., None]
        index = nodes.clamp(min=0)[..., None]

        def gather(values: Tensor) -> Tensor:
            rows = values[objects]
            picked = rows.gather(1, index.expand(-1, -1, rows.shape[-1]))
            return torch.where(present, picked, picked.new_zeros(()))

        return Features(gather(self.local), gather(self.edge), self.whole[objects])


@dataclass(frozen=True)
class Matching(Batch):
    """What a head says about a padded batch of pairs."""

    unary: Float[Tensor, "B N M"]
    """Node affinity; larger is more alike."""
    assignment: Float[Tensor, "B N M"]
    """Soft: rows and columns sum to at most one, zero on padding."""
    structure_source: Float[Tensor, "B N N"]
    """The weighted adjacency that the quadratic term compares."""
    structure_target: Float[Tensor, "B M M"]
    earlier: tuple[Float[Tensor, "B N M"], ...] = ()
    """Assignments of earlier layers, for deep supervision."""


Head = Callable[[GraphPair, Features, Features], Matching]
Loss = Callable[[Matching, GraphPair], Tensor]
