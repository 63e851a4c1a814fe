"""Pairwise structural context: an adjacency whose edges are weighted by how alike their ends are."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from quadmatch.graph import GraphPair
from quadmatch.matching import Features

Kernel = Literal["linear", "cosine", "exp_cosine"]


def normalise_rows(features: Float[Tensor, "*N C"]) -> Float[Tensor, "*N C"]:
    """Rows of unit length; a row of (almost) zeros stays, and gets no gradient."""
    squared = features.square().sum(-1, keepdim=True)
    tiny = torch.finfo(features.dtype).tiny ** 0.5
    scale = torch.where(squared > tiny, squared.clamp(min=tiny).rsqrt(), squared.new_zeros(()))
    return features * scale


def weigh_adjacency(
    features: Float[Tensor, "B N C"], adjacency: Float[Tensor, "B N N"], kernel: Kernel = "exp_cosine"
) -> Float[Tensor, "B N N"]:
    """`A_D = f(P) ∘ A` (arXiv 2103.06643, eq. 4), one matrix product for all pairs of nodes.

    f_ij = p_i·p_j ("linear", the paper), cos(p_i, p_j) ("cosine", its bounded form) or
    exp(cos(p_i, p_j)) ("exp_cosine", the released code, never zero on an edge).
    """
    if kernel not in ("linear", "cosine", "exp_cosine"):
        raise ValueError(f"kernel must be 'linear', 'cosine' or 'exp_cosine', got {kernel!r}")
    rows = features if kernel == "linear" else normalise_rows(features)
    alike = rows @ rows.mT
    return (alike.exp() if kernel == "exp_cosine" else alike) * adjacency


def weigh_pair(
    pair: GraphPair, source: Features, target: Features, kernel: Kernel = "cosine"
) -> tuple[Float[Tensor, "B N N"], Float[Tensor, "B M M"]]:
    """Adjacencies of both graphs of a pair, weighted by the image features of their nodes."""
    sides = ((source, pair.source), (target, pair.target))
    first, second = (weigh_adjacency(one.join(), graph.adjacency, kernel) for one, graph in sides)
    return first, second
