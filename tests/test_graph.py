import dataclasses

import pytest
import torch
from random_pairs import make_features, random_features

from quadmatch import Features, Graph, GraphPair, Matching, collate
from quadmatch.graph import PairBatch
from quadmatch.matching import Stage


def _pair(n: int, m: int, seed: int = 0) -> GraphPair:
    generator = torch.Generator().manual_seed(seed)

    def graph(size: int) -> Graph:
        points = torch.rand(1, size, 2, generator=generator)
        adjacency = torch.rand(1, size, size, generator=generator)
        return Graph(points, torch.ones(1, size, dtype=torch.bool), adjacency)

    truth = torch.zeros(1, n, m, dtype=torch.bool)
    truth[0, range(min(n, m)), range(min(n, m))] = True
    return GraphPair(graph(n), graph(m), truth)


def test_collate_pads_and_keeps_each_pair():
    pairs = [_pair(3, 5, 1), _pair(4, 2, 2), _pair(0, 1, 3)]
    batch = collate(pairs)
    assert batch.mask.shape == (3, 4, 5)
    assert batch.source.sizes.tolist() == [3, 4, 0]
    for index, pair in enumerate(pairs):
        n, m = pair.truth.shape[1:]
        assert torch.equal(batch.source.adjacency[index, :n, :n], pair.source.adjacency[0])
        assert torch.equal(batch.target.points[index, :m], pair.target.points[0])
        assert torch.equal(batch.truth[index, :n, :m], pair.truth[0])
        assert not batch.mask[index, n:].any()
        assert not batch.mask[index, :, m:].any()
        assert batch.source.adjacency[index, n:].abs().sum() == 0
    with pytest.raises(ValueError, match="at least one pair"):
        collate([])


def test_shapes_are_enforced():
    with pytest.raises(Exception, match=r"jaxtyping|type"):
        Graph(torch.zeros(1, 3, 2), torch.ones(1, 4, dtype=torch.bool), torch.zeros(1, 3, 3))


def test_to_moves_numbers_and_leaves_masks():
    pair = _pair(3, 4).to(torch.float64)
    assert pair.source.points.dtype == torch.float64
    assert pair.mask.dtype == torch.bool
    assert pair.truth.dtype == torch.bool


def test_features_select():
    features = make_features(torch.rand(2, 3, 4), torch.rand(2, 3, 5), torch.rand(2, 6))
    chosen = features.select(torch.tensor([1, 0, 1]), torch.tensor([[2, 0], [1, -1], [-1, -1]]))
    assert torch.equal(chosen.local[0], features.local[1, [2, 0]])
    assert torch.equal(chosen.edge[1, 0], features.edge[0, 1])
    assert not chosen.local[1, 1].any()
    assert not chosen.edge[2].any()
    assert torch.equal(chosen.whole, features.whole[[1, 0, 1]])


def test_features_are_padded_and_joined():
    first, second = (random_features(size, 8, torch.Generator().manual_seed(size)) for size in (3, 5))
    both = Features.cat([first, second])
    assert both.nodes == 5
    assert torch.equal(both.local[:1, :3], first.local)
    assert not both.edge[0, 3:].any()
    assert torch.equal(both.whole, torch.cat([first.whole, second.whole]))
    assert Features.cat([first], nodes=7).nodes == first.pad(7).nodes == 7
    assert torch.equal(first.join(), torch.cat([first.local, first.edge], -1))


def test_graphs_are_joined_as_their_pairs_are():
    first, second = _pair(3, 4), _pair(5, 2)
    both = Graph.cat([first.source, second.source])
    assert torch.equal(both.adjacency, collate([first, second]).source.adjacency)
    assert both.sizes.tolist() == [3, 5]


def test_everything_in_a_batch_moves():
    features = random_features(3, 8, torch.Generator().manual_seed(0)).to(torch.float32)
    assert features.local.dtype == features.whole.dtype == torch.float32
    pairs = _pair(3, 3)
    stage = Stage(torch.zeros(1, 3, 3), torch.zeros(1, 3, 3))
    matching = Matching(stage.unary, stage.assignment, *(torch.zeros(1, 3, 3) for _ in range(2)), (stage,))
    moved = matching.to(torch.float64)
    assert moved.earlier[0].unary.dtype == torch.float64
    assert moved.unconstrained is None
    nodes = torch.zeros(1, 3, dtype=torch.long)
    batch = PairBatch(pairs, torch.tensor([0]), torch.tensor([0]), nodes, nodes).to(torch.float64)
    assert batch.pairs.source.points.dtype == torch.float64
    assert batch.source_nodes.dtype == torch.long


def test_types_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        _pair(2, 2).source.points = torch.zeros(1, 2, 2)
