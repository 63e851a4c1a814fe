"""Matcher: features and a head, for training, evaluation and a user's own images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from quadmatch.datasets.gathering import PairBatch
from quadmatch.decode import decode
from quadmatch.layers.quadratic_constraint import QuadraticStep
from quadmatch.matching import Features, Matching
from quadmatch.solvers.solution import Solution


class Stored(NamedTuple):
    """What an extractor keeps of some objects, joined; the arguments of its `forward`."""

    arrays: Mapping[str, Tensor]
    counts: Sequence[int]
    """Keypoints of each object."""


class Matcher(nn.Module):
    """Stored activations of objects and a batch of their pairs in, matchings and permutations out.

    `features` maps what is stored for some objects to `Features`, one row an object; `head` is any head.
    `weight`, `binary_structure` and `masked_residual` are those of `decode`; `threshold` is the assignment
    below which a partial match leaves two nodes alone.
    """

    def __init__(
        self,
        features: nn.Module,
        head: nn.Module,
        *,
        weight: float = 0.1,
        threshold: float = 0.2,
        binary_structure: bool = False,
        masked_residual: bool = False,
    ) -> None:
        super().__init__()
        self.features, self.head = features, head
        self.weight, self.threshold = weight, threshold
        self.binary_structure, self.masked_residual = binary_structure, masked_residual

    def forward(self, stored: Stored, batch: PairBatch) -> Matching:
        """The head's matching of each pair; `batch` counts objects by their rows in `stored`."""
        return self.compare(self.features(*stored), batch)

    def compare(self, features: Features, batch: PairBatch) -> Matching:
        """The head's matching of each pair from features of the objects, one row an object."""
        source = features.select(batch.source, batch.source_nodes)
        target = features.select(batch.target, batch.target_nodes)
        matching: Matching = self.head(batch.pairs, source, target)
        return matching

    def decode(
        self, matching: Matching, batch: PairBatch, *, partial: bool = False, constraint: bool = True
    ) -> Solution:
        """Permutations; without `constraint` neither the head's quadratic step nor the discrete one."""
        if not constraint:
            matching = self.release(matching)
        return decode(
            matching,
            batch.pairs.mask,
            weight=self.weight if constraint else 0.0,
            threshold=self.threshold if partial else None,
            binary_structure=self.binary_structure,
            masked_residual=self.masked_residual,
        )

    def release(self, matching: Matching) -> Matching:
        """The matching before the head's quadratic step, where the head has one."""
        # A head that constrains keeps what it constrained as the last of the earlier assignments.
        if not any(isinstance(part, QuadraticStep) for part in self.head.modules()):
            return matching
        return replace(matching, assignment=matching.earlier[-1], earlier=matching.earlier[:-1])


def relocate(batch: PairBatch, objects: Int[Tensor, " O"]) -> PairBatch:
    """The batch with its objects counted by their places in `objects`, which holds each of them once."""
    order = torch.argsort(objects)
    ranked = objects[order]

    def place(indices: Tensor) -> Tensor:
        found = torch.searchsorted(ranked, indices).clamp(max=len(ranked) - 1)
        if not torch.equal(ranked[found], indices):
            raise ValueError("objects must hold every object of the batch")
        return order[found]

    return replace(batch, source=place(batch.source), target=place(batch.target))
