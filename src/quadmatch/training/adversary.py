"""Keypoints moved to where a network is most likely to be wrong, so that it learns to be right there too."""

from __future__ import annotations

from dataclasses import replace

import torch

from quadmatch.features.prepared import Stored
from quadmatch.graph import PairBatch
from quadmatch.matcher import Matcher
from quadmatch.matching import Loss
from quadmatch.training.augment import join_anew


def move_against(
    matcher: Matcher, loss: Loss, stored: Stored, batch: PairBatch, pixels: float, construction: str
) -> PairBatch:
    """The batch with each coordinate of each keypoint moved by `pixels` to where the loss is larger, and joined anew.

    One step by the sign of the loss's gradient (Ren et al., ASAR-GM, CVPR 2022, without their change of the picture).
    Features stay those of the annotated places.
    """
    pairs = batch.pairs
    sides = [replace(graph, points=graph.points.clone().requires_grad_()) for graph in (pairs.source, pairs.target)]
    looked = replace(batch, pairs=replace(pairs, source=sides[0], target=sides[1]))
    wrong, places = loss(matcher(stored, looked), looked.pairs), [one.points for one in sides]
    slopes = torch.autograd.grad(wrong, places, allow_unused=True, materialize_grads=True)
    source, target = (
        join_anew(graph.points.detach() + pixels * slope.sign(), graph.mask, construction)
        for graph, slope in zip(sides, slopes)
    )
    return replace(batch, pairs=replace(pairs, source=source, target=target))
