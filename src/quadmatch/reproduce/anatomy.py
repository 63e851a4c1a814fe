"""What happens inside the network to one pair of photographs: its tensors, for figures 2 to 4."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from quadmatch.datasets.photo_pairs import PicturePair, pair_views
from quadmatch.datasets.photo_warps import find_corners
from quadmatch.datasets.picture import pair_pictures
from quadmatch.layers.structure import Kernel
from quadmatch.reproduce.items import Settings

Array = NDArray[np.float64]

MODEL, PHOTOGRAPH, KEYPOINTS, STRENGTH = "qcdgm1-voc", "motorcycle_left.png", 12, 1.5
"""A shipped model, and a photograph that comes with scikit-image, warped hard enough that scores are in doubt."""
KERNEL: Kernel = "exp_cosine"
"""That of the shipped models."""
ALPHA, BETA = 2.0, 0.1
"""Weights of wrong and of missing matches in the loss, as the paper has them."""


@dataclass(frozen=True, eq=False)
class Anatomy:
    """A pair of photographs and all that the network makes of it, node by node."""

    pair: PicturePair
    attributes: tuple[Array, Array]
    """P: what the image says of each node and where the node is, [N, C] each."""
    edges: tuple[Array, Array]
    """A and B: which nodes the triangulation joins."""
    structures: tuple[Array, Array]
    """A_D and B_D: those edges, weighted by how alike their ends are."""
    scores: Array
    """K_p before its exponential."""
    assignment: Array
    """After Sinkhorn, before the constraint."""
    constrained: Array
    permutation: Array
    truth: Array

    @property
    def false_positive(self) -> Array:
        """Mass on wrong matches, X∘(1 − X*)."""
        return self.constrained * (1 - self.truth)

    @property
    def false_negative(self) -> Array:
        """Mass that true matches lack, X*∘(1 − X)."""
        return self.truth * (1 - self.constrained)

    def describe(self) -> dict[str, object]:
        """What a record says of it."""
        right = int((self.permutation * self.truth).sum())
        return {"model": MODEL, "photograph": self.pair.name, "keypoints": len(self.truth), "right": right}


def look_inside(settings: Settings) -> Anatomy:
    """The tensors of the pair that figures 2 to 4 show; computed once for all three."""
    settings.say(f"{MODEL} on two views of {PHOTOGRAPH}")
    return _look_inside()


@lru_cache(maxsize=1)
@torch.no_grad()
def _look_inside() -> Anatomy:
    from quadmatch.features.prepared import pair_up
    from quadmatch.layers.network import SiameseNetwork
    from quadmatch.models.load import load

    matcher = load(MODEL).eval()
    head = matcher.head
    assert isinstance(head, SiameseNetwork)
    pair = pair_views(PHOTOGRAPH, find_corners(PHOTOGRAPH, KEYPOINTS), strength=STRENGTH)
    pictures, source, target = pair_pictures(pair.picture_a, pair.points_a, pair.picture_b, pair.points_b)
    ((stored, batch),) = pair_up(matcher.prepare(pictures), source, target, matcher.device)
    features = matcher.features(*stored)
    matching = matcher.compare(features, batch)
    solution = matcher.decode(matching, batch)
    graphs = (batch.pairs.source, batch.pairs.target)
    attributes = head.attributes(features.join(), torch.cat([graph.points for graph in graphs]))
    return Anatomy(
        pair,
        (_plain(attributes[0]), _plain(attributes[1])),
        (_plain(graphs[0].adjacency[0]), _plain(graphs[1].adjacency[0])),
        (_plain(matching.structure_source[0]), _plain(matching.structure_target[0])),
        _plain(matching.unary[0]),
        _plain(matching.release().assignment[0]),
        _plain(matching.assignment[0]),
        _plain(solution.assignment[0]),
        (pair.truth[:, None] == np.arange(len(pair.truth))).astype(np.float64),
    )


def _plain(values: torch.Tensor) -> Array:
    return values.double().cpu().numpy()
