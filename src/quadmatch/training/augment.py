"""Augmentations: pairs of a training batch, changed at random so that no step sees quite the same graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quadmatch.datasets.gathering import join_points
from quadmatch.datasets.protocols import MINIMUM
from quadmatch.experiments.reading import Experiment
from quadmatch.features.prepared import Stored
from quadmatch.graph import Graph, PairBatch

Augmentation = Callable[[Stored, PairBatch, torch.Generator], tuple[Stored, PairBatch]]
"""Changes what is kept of the objects, or their pairs; all chance comes from the generator."""


def jitter(pixels: float, construction: str) -> Augmentation:
    """Move each keypoint of a pair by normal noise of so many pixels, and join them anew.

    Features stay those of the place that was annotated.
    """

    def move(graph: Graph, generator: torch.Generator) -> Graph:
        noise = torch.randn(graph.points.shape, generator=generator).to(graph.points)
        return join_anew(graph.points + pixels * noise, graph.mask, construction)

    return _move_both(move)


def _move_both(move: Callable[[Graph, torch.Generator], Graph]) -> Augmentation:
    """The augmentation that changes either graph of each pair by itself."""

    def augment(stored: Stored, batch: PairBatch, generator: torch.Generator) -> tuple[Stored, PairBatch]:
        source, target = (move(graph, generator) for graph in (batch.pairs.source, batch.pairs.target))
        return stored, replace(batch, pairs=replace(batch.pairs, source=source, target=target))

    return augment


def dropout(share: float, construction: str) -> Augmentation:
    """Leave out that share of the keypoints of a pair, and join the others anew.

    A keypoint and its partner stay or go together, so that the truth holds of what is left; three partners
    stay in any case, where there are so many.
    """

    def augment(stored: Stored, batch: PairBatch, generator: torch.Generator) -> tuple[Stored, PairBatch]:
        pairs = batch.pairs
        first, second = (
            torch.rand(graph.mask.shape, generator=generator).to(graph.points.device)
            for graph in (pairs.source, pairs.target)
        )
        # Those with a partner come before all others, those that are no keypoints last.
        order = torch.where(pairs.source.mask, first + pairs.truth.any(2), -1.0)
        safe = order >= order.topk(min(MINIMUM, order.shape[1]), dim=1).values[:, -1:]
        left = pairs.source.mask & ((first >= share) | safe)
        followed = (pairs.truth & left[:, :, None]).any(1)
        right = pairs.target.mask & torch.where(pairs.truth.any(1), followed, second >= share)
        source, target = (
            join_anew(graph.points, kept, construction) for graph, kept in ((pairs.source, left), (pairs.target, right))
        )
        truth = pairs.truth & left[:, :, None] & right[:, None, :]
        return stored, replace(
            batch,
            pairs=replace(pairs, source=source, target=target, truth=truth),
            source_nodes=batch.source_nodes.where(left, -1),
            target_nodes=batch.target_nodes.where(right, -1),
        )

    return augment


def affine(deviation: float, construction: str) -> Augmentation:
    """Turn, stretch and shear the keypoints of each graph about their centre, and join them anew.

    The linear map is the identity plus normal noise of this deviation. Features stay as they are.
    """

    def move(graph: Graph, generator: torch.Generator) -> Graph:
        noise = torch.randn(len(graph.points), 2, 2, generator=generator).to(graph.points)
        real = graph.mask[..., None].to(graph.points.dtype)
        centre = (graph.points * real).sum(1, keepdim=True) / real.sum(1, keepdim=True).clamp(min=1)
        return join_anew(graph.points + deviation * (graph.points - centre) @ noise, graph.mask, construction)

    return _move_both(move)


def articulation(deviation: float, construction: str) -> Augmentation:
    """Turn a part of each graph, as a head or a limb turns, and join its keypoints anew.

    The part is what lies on one side of a random line through a random keypoint. It turns about that keypoint by
    an angle with this standard deviation, in radians. Features stay as they are.
    """

    def move(graph: Graph, generator: torch.Generator) -> Graph:
        points, graphs = graph.points, len(graph.points)
        chance = torch.rand(graph.mask.shape, generator=generator).to(points.device).masked_fill(~graph.mask, -1)
        angles = torch.randn(graphs, generator=generator) * deviation
        lines = torch.rand(graphs, generator=generator) * 2 * torch.pi
        offsets = points - points[torch.arange(graphs), chance.argmax(1)][:, None]
        across = torch.stack([lines.cos(), lines.sin()], -1).to(points)
        turn = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], -1).view(-1, 2, 2).to(points)
        turns = (offsets @ across[:, :, None]) > 0
        return join_anew(points + torch.where(turns, offsets @ turn.mT - offsets, 0.0), graph.mask, construction)

    return _move_both(move)


def features(share: float, construction: str) -> Augmentation:
    """Leave out that share of the image features of each object, each by itself, and make the others larger for it."""

    def augment(stored: Stored, batch: PairBatch, generator: torch.Generator) -> tuple[Stored, PairBatch]:
        def thin(array: Tensor) -> Tensor:
            kept = (torch.rand(array.shape, generator=generator) >= share).to(array)
            return array * kept / max(1 - share, 1e-6)

        return stored._replace(arrays={name: thin(array) for name, array in stored.arrays.items()}), batch

    return augment


AUGMENTATIONS: dict[str, Callable[[float, str], Augmentation]] = {
    "affine": affine,
    "jitter": jitter,
    "dropout": dropout,
    "articulation": articulation,
    "features": features,
}
"""By the key of `training.augmentation`: from a strength and a graph construction to the augmentation."""


def build_augmentations(experiment: Experiment) -> list[Augmentation]:
    """The experiment's augmentations, without those of strength 0."""
    strengths, construction = experiment.training.augmentation, experiment.data.construction
    return [
        build(strength, construction)
        for name, build in AUGMENTATIONS.items()
        if (strength := getattr(strengths, name)) > 0
    ]


def join_anew(points: Float[Tensor, "B N 2"], mask: Bool[Tensor, "B N"], construction: str) -> Graph:
    """The graphs of the masked points, zero elsewhere."""
    adjacency = join_points(points.cpu().numpy(), mask.cpu().numpy(), construction)
    return Graph(points * mask[:, :, None], mask, torch.from_numpy(adjacency).to(points))
