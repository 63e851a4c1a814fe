"""Node affinities: how alike each node of the source is to each node of the target."""

from __future__ import annotations

from math import log, sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import pad

from quadmatch.layers.linear import Linear
from quadmatch.layers.structure import normalise_rows


class BilinearAffinity(nn.Module):
    """`s = P_A (W + Wᵀ)/2 P_Bᵀ`; W starts at the identity plus U(±1/√channels).

    The paper's K_p is exp(s). Sinkhorn in log domain at temperature 1 takes s itself, so the exponential
    is never computed and cannot overflow.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        bound = 1 / sqrt(channels)
        noise = torch.empty(channels, channels).uniform_(-bound, bound)
        self.weight = nn.Parameter(noise + torch.eye(channels))

    def forward(self, source: Float[Tensor, "B N C"], target: Float[Tensor, "B M C"]) -> Float[Tensor, "B N M"]:
        """Scores of all pairs of nodes."""
        return (source @ ((self.weight + self.weight.mT) / 2)) @ target.mT


class CosineAffinity(nn.Module):
    """`s = scale · cos(p_a, p_b)` with a learned positive scale, at most 100."""

    def __init__(self, scale: float = 20.0) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(log(scale)))

    def forward(self, source: Float[Tensor, "B N C"], target: Float[Tensor, "B M C"]) -> Float[Tensor, "B N M"]:
        """Scores of all pairs of nodes."""
        return self.scale * (normalise_rows(source) @ normalise_rows(target).mT)

    @property
    def scale(self) -> Tensor:
        """What cosines are multiplied by."""
        return self.log_scale.clamp(max=log(100.0)).exp()


class ProjectedAffinity(nn.Module):
    """Cosines of nodes after LayerNorm and a linear map, both the same for the two graphs."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm, self.project, self.cosine = nn.LayerNorm(channels), Linear(channels, channels), CosineAffinity()

    def forward(self, source: Float[Tensor, "B N C"], target: Float[Tensor, "B M C"]) -> Float[Tensor, "B N M"]:
        """Scores of all pairs of nodes."""
        scores: Tensor = self.cosine(*(self.project(self.norm(nodes)) for nodes in (source, target)))
        return scores

    def place(self, nodes: Float[Tensor, "*B C"]) -> Float[Tensor, "*B C"]:
        """Nodes as points whose products are the scores."""
        return self.cosine.scale.sqrt() * normalise_rows(self.project(self.norm(nodes)))


def divide_by_largest(scores: Float[Tensor, "B N M"], mask: Bool[Tensor, "B N M"]) -> Float[Tensor, "B N M"]:
    """Each pair's scores divided by its own largest one; left alone where that is not positive."""
    flat = scores.masked_fill(~mask, 0).flatten(1)
    largest = pad(flat, (0, 1)).amax(-1)[:, None, None]  # the extra zero: a pair may have no entry
    return scores / torch.where(largest > 0, largest, torch.ones_like(largest))
