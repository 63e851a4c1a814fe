"""Neighbours that move together mend an assignment; where they do not, it stays."""

from __future__ import annotations

from math import pi

import pytest
import torch

from quadmatch import Graph, GraphPair
from quadmatch.layers.local_maps import measure_miss, sharpen
from quadmatch.solvers.linear.hungarian import hungarian


def make_pair(points: torch.Tensor, others: torch.Tensor) -> GraphPair:
    graphs = [
        Graph(one[None], torch.ones(1, len(one), dtype=torch.bool), torch.zeros(1, len(one), len(one)))
        for one in (points, others)
    ]
    return GraphPair(*graphs, torch.zeros(1, len(points), len(others), dtype=torch.bool))


def fold(points: torch.Tensor) -> torch.Tensor:
    """A corner of a house that is walked past: the left half of the picture gets narrower, the right half wider."""
    x, y = points.T
    left = x < 128
    return torch.stack([torch.where(left, 0.5 * x, 64 + 1.5 * (x - 128)), 0.9 * y + 5], 1)


def confuse(truth: torch.Tensor, right: float, seed: int) -> torch.Tensor:
    """An assignment that puts most weight on the true place of some nodes, and on a wrong one of the others."""
    rng = torch.Generator().manual_seed(seed)
    count = len(truth)
    wrong = torch.rand(count, generator=rng) >= right
    place = torch.where(wrong, torch.randint(count, (count,), generator=rng), truth)
    soft = torch.full((count, count), 0.4 / count)
    soft[torch.arange(count), place] += 0.6
    return soft[None]


@pytest.mark.parametrize("seed", range(4))
def test_half_wrong_matches_of_a_folded_plane_are_mended(seed) -> None:
    rng = torch.Generator().manual_seed(seed)
    points = 20 + 216 * torch.rand(30, 2, generator=rng)
    order = torch.randperm(30, generator=rng)
    others = fold(points)[order]
    truth = order.argsort()
    pair, soft = make_pair(points, others), confuse(truth, 0.5, seed)
    before = (hungarian(soft, pair.mask)[0].argmax(1) == truth).float().mean()
    found = sharpen(soft, pair)
    after = (hungarian(found, pair.mask)[0].argmax(1) == truth).float().mean()
    assert before < 0.75
    assert after > 0.9
    assert (found.sum(-1) <= 1 + 1e-4).all()


def test_padding_and_other_pairs_change_nothing() -> None:
    rng = torch.Generator().manual_seed(0)
    points = 256 * torch.rand(14, 2, generator=rng)
    pair, soft = make_pair(points, fold(points)), confuse(torch.arange(14), 0.6, 1)
    wide = torch.zeros(2, 20, 20)
    wide[0, :14, :14], wide[1, :20, :20] = soft[0], torch.rand(20, 20, generator=rng) / 20
    mask = torch.stack([torch.arange(20) < 14, torch.ones(20, dtype=torch.bool)])
    sides = []
    for one in (points, fold(points)):
        padded = 256 * torch.rand(2, 20, 2, generator=rng)
        padded[0, :14], padded[0, 14:] = one, 0
        sides.append(Graph(padded, mask, torch.zeros(2, 20, 20)))
    both = GraphPair(*sides, torch.zeros(2, 20, 20, dtype=torch.bool))
    alone, beside = sharpen(soft, pair), sharpen(wide, both)
    assert torch.allclose(beside[0, :14, :14], alone[0], atol=1e-6)
    assert beside[0, 14:].abs().sum() == beside[0, :, 14:].abs().sum() == 0
    matched = torch.eye(14)[None]
    padded = torch.zeros(2, 20, 20)
    padded[0, :14, :14], padded[1] = matched, torch.eye(20)
    assert measure_miss(padded, both)[0] == pytest.approx(float(measure_miss(matched, pair)[0]), rel=1e-6)


def test_a_miss_is_small_for_what_moves_together_and_large_for_chance() -> None:
    rng = torch.Generator().manual_seed(0)
    points = 256 * torch.rand(30, 2, generator=rng)
    turn = torch.tensor([[torch.cos(torch.tensor(pi / 6)), 0.5], [-0.5, torch.cos(torch.tensor(pi / 6))]])
    affine = points @ turn + 10
    chance = 256 * torch.rand(30, 2, generator=rng)
    eye = torch.eye(30)[None]
    misses = [float(measure_miss(eye, make_pair(points, one))[0]) for one in (affine, fold(points), chance)]
    assert misses[0] < misses[1] < 30 < 60 < misses[2]


def test_graphs_without_nodes_pass() -> None:
    pair = make_pair(torch.zeros(0, 2), torch.zeros(3, 2))
    assert sharpen(torch.zeros(1, 0, 3), pair).shape == (1, 0, 3)
    assert measure_miss(torch.zeros(1, 0, 3), pair).tolist() == [0.0]
