"""Matcher: features and a head, for training, evaluation and a user's own images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from quadmatch.datasets.gathering import PairBatch
from quadmatch.decode import decode, limit_iterations
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.graph import GraphPair
from quadmatch.layers.quadratic_constraint import QuadraticStep
from quadmatch.matching import Features, Matching
from quadmatch.result import MatchResult
from quadmatch.solvers.solution import Solution
from quadmatch.subjects import Request, Stored, Subject, pair_requests, pair_up, prepare


class Matcher(nn.Module):
    """Stored activations of objects and a batch of their pairs in, matchings and permutations out.

    `features` maps what is stored for some objects to `Features`, one row an object; `head` is any head.
    `weight`, `binary_structure` and `masked_residual` are those of `decode`; `threshold` is the assignment
    below which a partial match leaves two nodes alone; `construction` joins a user's keypoints to a graph.
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
        construction: str = "delaunay",
    ) -> None:
        super().__init__()
        self.features, self.head = features, head
        self.weight, self.threshold = weight, threshold
        self.binary_structure, self.masked_residual = binary_structure, masked_residual
        self.construction = construction

    def forward(self, stored: Stored, batch: PairBatch) -> Matching:
        """The head's matching of each pair; `batch` counts objects by their rows in `stored`."""
        return self.compare(self.features(*stored), batch)

    def compare(self, features: Features, batch: PairBatch) -> Matching:
        """The head's matching of each pair from features of the objects, one row an object."""
        if not features.local.shape[1]:  # No object has a keypoint: a padded one for all.
            extra = (0, 0, 0, 1)
            features = replace(features, local=pad(features.local, extra), edge=pad(features.edge, extra))
        source = features.select(batch.source, batch.source_nodes)
        target = features.select(batch.target, batch.target_nodes)
        matching: Matching = self.head(batch.pairs, source, target)
        return matching

    def decode(
        self, matching: Matching, batch: PairBatch, *, partial: bool = False, constraint: bool = True
    ) -> Solution:
        """Permutations; without `constraint` neither the head's quadratic step nor the discrete one.

        In a `partial` match pairs below the threshold are left out at the end too: edges alone, which
        outliers have as well, should not hold a pair that its two nodes speak against.
        """
        used = matching if constraint else self.release(matching)
        solution = decode(
            used,
            batch.pairs.mask,
            weight=self.weight if constraint else 0.0,
            threshold=self.threshold if partial else None,
            iterations=limit_iterations(*batch.pairs.truth.shape[1:]),
            binary_structure=self.binary_structure,
            masked_residual=self.masked_residual,
        )
        if not partial:
            return solution
        return replace(solution, assignment=solution.assignment * (used.assignment >= self.threshold))

    def release(self, matching: Matching) -> Matching:
        """The matching before the head's quadratic step, where the head has one."""
        # A head that constrains keeps what it constrained as the last of the earlier assignments.
        if not any(isinstance(part, QuadraticStep) for part in self.head.modules()):
            return matching
        return replace(matching, assignment=matching.earlier[-1], earlier=matching.earlier[:-1])

    @property
    def device(self) -> torch.device:
        """Where the parameters are; the central processor if there are none."""
        return next((one.device for one in self.parameters()), torch.device("cpu"))

    def match(
        self,
        image_a: Any,
        points_a: Any,
        image_b: Any,
        points_b: Any,
        *,
        box_a: Any = None,
        box_b: Any = None,
        partial: bool = False,
        constraint: bool = True,
    ) -> MatchResult | list[MatchResult]:
        """Match keypoints of one picture to those of another; with lists of pictures, one result a pair.

        Pictures are paths, PIL images or arrays; points are [[x, y], …] in pixels of the upright picture. A
        picture is cropped to its box (x0, y0, x1, y1), else around its keypoints, and resized. `partial`
        leaves keypoints alone that match nothing well; `constraint` switches the quadratic constraint.
        """
        requests, source, target = pair_requests(image_a, points_a, image_b, points_b, box_a, box_b)
        subjects = self.prepare(requests)
        results = self.match_subjects(subjects, source, target, partial=partial, constraint=constraint)
        return results if isinstance(image_a, (list, tuple)) else results[0]

    def prepare(self, requests: Sequence[Request]) -> list[Subject]:
        """The convolutions: what `match_subjects` needs of each picture and its keypoints."""
        if not isinstance(self.features, FeatureExtractor):
            raise TypeError("to match pictures, a Matcher needs a FeatureExtractor as its features")
        return prepare(self.features, requests, construction=self.construction, device=self.device)

    @torch.no_grad()
    def match_subjects(
        self,
        subjects: Sequence[Subject],
        source: Sequence[int],
        target: Sequence[int],
        *,
        partial: bool = False,
        constraint: bool = True,
    ) -> list[MatchResult]:
        """One result for each pair of subjects, given by their places; nodes in the user's order."""
        training = self.training
        self.eval()
        results: list[MatchResult] = []
        try:
            for batch in pair_up(subjects, source, target, self.device):
                matching = self(batch.stored, batch.pairs)
                solution = self.decode(matching, batch.pairs, partial=partial, constraint=constraint)
                assignment = (matching if constraint else self.release(matching)).assignment
                results += split_results(batch.pairs.pairs, assignment, solution)
        finally:
            self.train(training)
        return results


def split_results(
    pairs: GraphPair, assignment: Float[Tensor, "B N M"], solution: Solution
) -> list[MatchResult]:
    """The result of each pair of a batch, without its padding, as numpy arrays."""
    results = []
    sizes = zip(pairs.source.sizes.tolist(), pairs.target.sizes.tolist())
    for row, (nodes, others) in enumerate(sizes):
        soft = assignment[row, :nodes, :others].cpu().numpy()
        hard = solution.assignment[row, :nodes, :others].cpu().numpy()
        chosen = np.argwhere(hard > 0.5)
        results.append(
            MatchResult(
                pairs=chosen,
                scores=soft[chosen[:, 0], chosen[:, 1]],
                assignment=soft,
                objective=float(solution.objective[row]),
                iterations=int(solution.iterations[row]),
                converged=bool(solution.converged[row]),
                source=pairs.source.adjacency[row, :nodes, :nodes].cpu().numpy(),
                target=pairs.target.adjacency[row, :others, :others].cpu().numpy(),
            )
        )
    return results


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


def move_batch(batch: PairBatch, device: torch.device) -> PairBatch:
    """The batch on another device."""
    indices = (batch.source, batch.target, batch.source_nodes, batch.target_nodes)
    return PairBatch(batch.pairs.to(device), *(index.to(device) for index in indices))
