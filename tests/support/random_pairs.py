"""Random pairs with features, for tests of heads and losses."""

import torch
from torch.nn.functional import normalize, pad

from quadmatch import Features, Graph, GraphPair
from quadmatch.delaunay import delaunay
from quadmatch.matching import EDGE, LOCAL


def random_graph(size: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Graph:
    points = 256 * torch.rand(size, 2, generator=generator, dtype=dtype)
    mask = torch.ones(1, size, dtype=torch.bool)
    return Graph(points[None], mask, delaunay(points)[None].to(dtype))


def random_features(size: int, channels: int, generator: torch.Generator, dtype=torch.float64) -> Features:
    """Positive and sparse, of unit length, as activations at a keypoint are."""
    values = torch.rand(2, 1, size, channels // 2, generator=generator, dtype=dtype) ** 4
    local, edge = normalize(values, dim=-1)
    return make_features(local, edge, torch.rand(1, 4, generator=generator, dtype=dtype))


def make_features(local: torch.Tensor, edge: torch.Tensor, whole: torch.Tensor) -> Features:
    return Features({LOCAL: local, EDGE: edge}, whole)


def random_pair(
    n: int, m: int, seed: int = 0, channels: int = 12, dtype: torch.dtype = torch.float64
) -> tuple[GraphPair, Features, Features]:
    """One pair; as many true matches as fit, in random places."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.zeros(1, n, m, dtype=torch.bool)
    common = min(n, m)
    rows, columns = torch.randperm(n, generator=generator), torch.randperm(m, generator=generator)
    truth[0, rows[:common], columns[:common]] = True
    source, target = random_graph(n, generator, dtype), random_graph(m, generator, dtype)
    features = [random_features(size, channels, generator, dtype) for size in (n, m)]
    return GraphPair(source, target, truth), features[0], features[1]


def pad_with_junk(features: Features, nodes: int, fill: float) -> Features:
    maps = {name: pad(rows, (0, 0, 0, nodes - rows.shape[1]), value=fill) for name, rows in features.maps.items()}
    return Features(maps, features.whole)


def relabel_graph(graph: Graph, order: torch.Tensor) -> Graph:
    return Graph(graph.points[:, order], graph.mask[:, order], graph.adjacency[:, order][:, :, order])


def relabel_features(features: Features, order: torch.Tensor) -> Features:
    return Features({name: rows[:, order] for name, rows in features.maps.items()}, features.whole)
