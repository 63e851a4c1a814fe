import dataclasses

import pytest
import torch

from quadmatch import Features, Graph, GraphPair, collate


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
    features = Features(torch.rand(2, 3, 4), torch.rand(2, 3, 5), torch.rand(2, 6))
    chosen = features.select(torch.tensor([1, 0, 1]), torch.tensor([[2, 0], [1, -1], [-1, -1]]))
    assert torch.equal(chosen.local[0], features.local[1, [2, 0]])
    assert torch.equal(chosen.edge[1, 0], features.edge[0, 1])
    assert not chosen.local[1, 1].any()
    assert not chosen.edge[2].any()
    assert torch.equal(chosen.whole, features.whole[[1, 0, 1]])


def test_types_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        _pair(2, 2).source.points = torch.zeros(1, 2, 2)
