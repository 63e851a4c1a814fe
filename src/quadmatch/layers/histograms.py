"""Histogram attributes of edges: how long they are, and where they point."""

from __future__ import annotations

from math import pi

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quadmatch.layers.structure import normalise_rows

OCTAVES = 0.5
"""Width of a bin of lengths."""


def describe_edges(
    points: Float[Tensor, "B N 2"], edges: Int[Tensor, "B E 2"], lengths: int = 9, directions: int = 18
) -> Float[Tensor, "B E K"]:
    """Of each edge a histogram of its log-length, then one of its direction, each of unit length.

    A value is a Gaussian window as wide as a bin (M. Cho, K. Alahari, J. Ponce, "Learning graphs to match", ICCV 2013).
    Lengths count from the mean length of the graph's edges, in bins of half an octave; a row without an edge is zero.
    """
    real = (edges >= 0).all(-1)
    starts, ends = (points.gather(1, one[..., None].expand(-1, -1, 2)) for one in edges.clamp(min=0).unbind(-1))
    offsets = (ends - starts).masked_fill(~real[..., None], 0)
    length = torch.linalg.vector_norm(offsets, dim=-1)
    mean = length.sum(1, keepdim=True) / real.sum(1, keepdim=True).clamp(min=1)
    ratio = length.clamp(min=1e-6) / mean.clamp(min=1e-6)
    places = torch.arange(lengths, device=points.device) - (lengths - 1) / 2
    far = (ratio.log2() / OCTAVES).clamp(-lengths, lengths)[..., None] - places
    angle = torch.atan2(offsets[..., 1], offsets[..., 0])[..., None] * (directions / (2 * pi))
    turned = angle - torch.arange(directions, device=points.device)
    turned = turned - directions * (turned / directions).round()
    windows = [normalise_rows((-distance.square() / 2).exp()) for distance in (far, turned)]
    return torch.cat(windows, -1).masked_fill(~real[..., None], 0)
