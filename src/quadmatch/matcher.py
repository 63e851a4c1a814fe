"""Matcher: features and a head, for training, evaluation and a user's own images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from quadmatch.datasets.picture import Picture, pair_pictures
from quadmatch.datasets.turning import AS_GIVEN, list_tries, take_best
from quadmatch.decode import LARGE, compare_sizes, decode, limit_iterations, split_results
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.prepared import Prepared, Stored, pair_up, prepare
from quadmatch.features.threads import evaluating
from quadmatch.graph import GraphPair, PairBatch
from quadmatch.layers.local_maps import EVERYBODY, sharpen
from quadmatch.layers.quadratic_constraint import QuadraticStep
from quadmatch.matching import Features, Matching, Solution
from quadmatch.result import MatchResult

UNCONSTRAINED = {"weight": 0.0}  # Keywords of `decode` for the Hungarian match.


class Matcher(nn.Module):
    """Features and a head: from stored activations of objects and a batch of their pairs to matchings.

    `features` maps what is stored for some objects to `Features`, one row an object; `head` is any head.
    `constraint` is the quadratic constraint behind the head, if the network has one. `decoding` are the
    keywords of `decode` for the discrete constraint; without them permutations are the Hungarian matches.
    `threshold` is the assignment below which a partial match of graphs of one size leaves two nodes alone
    (`compare_sizes`); `construction` joins a user's keypoints to a graph. Where `local_maps` is above 0,
    matches that leave no node alone also follow affine maps that are fitted around every node; it is the
    `doubt` of `sharpen`.
    """

    def __init__(
        self,
        features: nn.Module,
        head: nn.Module,
        *,
        constraint: QuadraticStep | None = None,
        decoding: Mapping[str, Any] | None = None,
        threshold: float = 0.2,
        construction: str = "delaunay",
        local_maps: float = 0.0,
    ) -> None:
        super().__init__()
        self.features, self.head = features, head
        self.constraint, self.decoding = constraint, decoding
        self.threshold, self.construction, self.local_maps = threshold, construction, local_maps

    def forward(self, stored: Stored, batch: PairBatch) -> Matching:
        """The matching of each pair; `batch` counts objects by their rows in `stored`."""
        return self.compare(self.features(*stored), batch)

    def compare(self, features: Features, batch: PairBatch) -> Matching:
        """The matching of each pair from features of the objects, one row an object."""
        if not features.nodes:  # No object has a keypoint: a padded one for all.
            features = features.pad(1)
        source = features.select(batch.source, batch.source_nodes)
        target = features.select(batch.target, batch.target_nodes)
        matching: Matching = self.head(batch.pairs, source, target)
        return matching if self.constraint is None else self.constraint(matching, batch.pairs.mask)

    def settle(
        self, matching: Matching, pair: GraphPair, *, partial: bool = False, constraint: bool = True
    ) -> Matching:
        """The matching as it is used: with the network's quadratic step or without, of all nodes or of some."""
        used = (matching if constraint else matching.release()).settle(partial=partial)
        if partial or not self.local_maps or pair.mask.shape[1:].numel() > LARGE:
            return used
        least = torch.full_like(used.assignment[:, 0, 0], EVERYBODY)
        sharp = sharpen(used.assignment, used.assignment, pair, least=least, doubt=self.local_maps)
        return replace(used, assignment=sharp)

    def decode(
        self, matching: Matching, batch: PairBatch, *, partial: bool = False, constraint: bool = True
    ) -> Solution:
        """Permutations; without `constraint` neither the network's quadratic step nor the discrete one.

        In a `partial` match pairs below the threshold are left out at the end too: edges alone, which
        outliers have as well, should not hold a pair that its two nodes speak against.
        """
        used = self.settle(matching, batch.pairs, partial=partial, constraint=constraint)
        return self._decode(used, batch.pairs, partial=partial, constraint=constraint)

    def _decode(self, used: Matching, pair: GraphPair, *, partial: bool, constraint: bool) -> Solution:
        options: dict[str, Any] = {"iterations": limit_iterations(*pair.truth.shape[1:]), "by_sizes": True}
        options |= UNCONSTRAINED if self.decoding is None or not constraint else self.decoding
        threshold = self.threshold if partial else None
        solution = decode(used, pair.mask, threshold=threshold, **options)
        if threshold is None:
            return solution
        least = threshold * (compare_sizes(pair.mask)[:, None, None] if options["by_sizes"] else 1.0)
        return replace(solution, assignment=solution.assignment * (used.assignment >= least))

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
        orientation: str | int = AS_GIVEN,
    ) -> MatchResult | list[MatchResult]:
        """Match keypoints of one picture to those of another; with lists of pictures, one result a pair.

        Pictures are paths, PIL images or arrays; points are [[x, y], …] in pixels of the upright picture. A
        picture is cropped to its box (x0, y0, x1, y1), else around its keypoints as `match_pictures` says, and
        resized. `partial` leaves keypoints alone that match nothing well; `constraint` is the quadratic one.
        `orientation` is how the second picture is turned before it is compared, by 90, 180 or 270 degrees
        clockwise or as `mirror`; `auto` tries all eight and keeps the best, which the result names.
        """
        pictures, source, target = pair_pictures(image_a, points_a, image_b, points_b, box_a, box_b)
        results = self.match_pictures(
            pictures, source, target, partial=partial, constraint=constraint, orientation=orientation
        )
        return results if isinstance(image_a, (list, tuple)) else results[0]

    def match_pictures(
        self,
        pictures: Sequence[Picture],
        source: Sequence[int],
        target: Sequence[int],
        *,
        partial: bool = False,
        constraint: bool = True,
        orientation: str | int = AS_GIVEN,
    ) -> list[MatchResult]:
        """One result for each pair of pictures, given by their places.

        Where a pair is tried in several ways (`list_tries`), the lowest objective decides.
        """
        views, tries = list_tries(pictures, source, target, [orientation] * len(source))
        left, right = [one.source for one in tries], [one.target for one in tries]
        results = self.match_prepared(self.prepare(views), left, right, partial=partial, constraint=constraint)
        return take_best(tries, results)

    def prepare(self, pictures: Sequence[Picture]) -> list[Prepared]:
        """The convolutions: what `match_prepared` needs of each picture and its keypoints."""
        if not isinstance(self.features, FeatureExtractor):
            raise TypeError("to match pictures, a Matcher needs a FeatureExtractor as its features")
        return prepare(self.features, pictures, construction=self.construction, device=self.device)

    def match_prepared(
        self,
        prepared: Sequence[Prepared],
        source: Sequence[int],
        target: Sequence[int],
        *,
        partial: bool = False,
        constraint: bool = True,
    ) -> list[MatchResult]:
        """One result for each pair of prepared pictures, given by their places; nodes in the user's order."""
        return self.match_ways(prepared, source, target, partial=partial, ways=(constraint,))[0]

    @torch.inference_mode()
    def match_ways(
        self,
        prepared: Sequence[Prepared],
        source: Sequence[int],
        target: Sequence[int],
        *,
        partial: bool = False,
        ways: Sequence[bool] = (True, False),
        read: Callable[..., Features] | None = None,
    ) -> list[list[MatchResult]]:
        """As `match_prepared`, a list for each way (with the constraint or without) from one pass of the network.

        `read` makes features of what the pictures' entries hold; without it, the extractor does.
        """
        results: list[list[MatchResult]] = [[] for _ in ways]
        with evaluating(self):
            for stored, pairs in pair_up(prepared, source, target, self.device):
                matching = self.compare((read or self.features)(*stored), pairs)
                for found, constraint in zip(results, ways):
                    used = self.settle(matching, pairs.pairs, partial=partial, constraint=constraint)
                    solution = self._decode(used, pairs.pairs, partial=partial, constraint=constraint)
                    found += split_results(pairs.pairs, used, solution)
        return results
