"""Neighbours that move together mend an assignment; where they do not, it stays."""

from __future__ import annotations

from math import pi

import pytest
import torch

from quadmatch import Graph, GraphPair
from quadmatch.layers.local_maps import measure_gain, sharpen
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


def limit(count: int, least: float) -> torch.Tensor:
    return torch.full((count,), least)


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
    found = sharpen(soft, soft, pair, least=limit(1, -12.0))
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
    alone = sharpen(soft, soft, pair, least=limit(1, -6.0))
    beside = sharpen(wide, wide, both, least=limit(2, -6.0))
    assert torch.allclose(beside[0, :14, :14], alone[0], atol=1e-6)
    assert beside[0, 14:].abs().sum() == beside[0, :, 14:].abs().sum() == 0
    matched = torch.eye(14)[None]
    padded = torch.zeros(2, 20, 20)
    padded[0, :14, :14], padded[1] = matched, torch.eye(20)
    assert measure_gain(padded, wide, both)[0] == pytest.approx(float(measure_gain(matched, soft, pair)[0]), rel=1e-6)


def test_matches_that_move_together_are_farther_from_chance() -> None:
    rng = torch.Generator().manual_seed(0)
    points = 256 * torch.rand(30, 2, generator=rng)
    turn = torch.tensor([[torch.cos(torch.tensor(pi / 6)), 0.5], [-0.5, torch.cos(torch.tensor(pi / 6))]])
    affine = points @ turn + 10
    chance = 256 * torch.rand(30, 2, generator=rng)
    eye, flat = torch.eye(30)[None], torch.full((1, 30, 30), 1 / 30)
    gains = [float(measure_gain(eye, flat, make_pair(points, one))[0]) for one in (affine, fold(points), chance)]
    assert gains[0] > gains[1] > 2 * gains[2] > 0
    known = float(measure_gain(eye, 0.9 * eye, make_pair(points, affine))[0])
    assert known > gains[0]  # What is known of the nodes counts as well.


@pytest.mark.parametrize("seed", range(4))
def test_points_without_a_partner_stay_alone_and_disturb_nobody(seed) -> None:
    rng = torch.Generator().manual_seed(seed)
    points = 20 + 216 * torch.rand(30, 2, generator=rng)
    strange = 256 * torch.rand(2, 10, 2, generator=rng)
    pair = make_pair(torch.cat([points, strange[0]]), torch.cat([fold(points), strange[1]]))
    soft = torch.full((1, 40, 40), 0.01)
    soft[0, torch.arange(30), torch.arange(30)] += 0.3 * (torch.rand(30, generator=rng) < 0.5)
    found = sharpen(soft, soft, pair, least=limit(1, -6.0))[0]
    right = (found[:30, :30].argmax(1) == torch.arange(30)).float().mean()
    assert right > 0.8
    assert found[30:].sum() / 10 < 0.5 < found[:30].sum() / 30
    forced = sharpen(soft, soft, pair, least=limit(1, -1e6))[0]
    assert forced[30:].sum() / 10 > 0.8  # With nothing to be gained alone, they are matched to something.


def test_graphs_without_nodes_pass() -> None:
    pair, nothing = make_pair(torch.zeros(0, 2), torch.zeros(3, 2)), torch.zeros(1, 0, 3)
    assert sharpen(nothing, nothing, pair, least=limit(1, -6.0)).shape == (1, 0, 3)
    assert measure_gain(nothing, nothing, pair).tolist() == [0.0]


def test_the_more_an_assignment_is_doubted_the_more_neighbours_can_overrule_it() -> None:
    rng = torch.Generator().manual_seed(3)
    points = 20 + 216 * torch.rand(10, 2, generator=rng)
    bent = points + 12 * torch.randn(10, 2, generator=rng)
    pair, swapped = make_pair(points, bent), torch.tensor([0, 1, 7, 3, 4, 5, 6, 2, 8, 9])
    sure = torch.full((10, 10), 1e-6)
    sure[torch.arange(10), swapped] = 1.0
    found = [
        hungarian(sharpen(sure[None], sure[None], pair, least=limit(1, -60.0), doubt=doubt), pair.mask)[0].argmax(1)
        for doubt in (1e-6, 0.05)
    ]
    assert torch.equal(found[0], swapped)
    assert torch.equal(found[1], torch.arange(10))
