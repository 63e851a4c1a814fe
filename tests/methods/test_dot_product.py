from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from random_pairs import random_pair, relabel_features, relabel_graph

from quadmatch import Features, GraphPair, collate
from quadmatch.methods.dot_product import DotProduct

sizes = st.integers(0, 6)


@given(st.lists(st.tuples(sizes, sizes), min_size=1, max_size=3), st.integers(0, 99))
def test_padding_changes_nothing_and_sums_are_bounded(shapes, seed) -> None:
    made = [random_pair(*shape, seed=seed + place) for place, shape in enumerate(shapes)]
    pairs, sources, targets = zip(*made)
    batch = collate(pairs)
    together = DotProduct()(batch, Features.cat(list(sources)), Features.cat(list(targets)))
    assert not together.assignment[~batch.mask].any()
    assert together.assignment.isfinite().all()
    for dim in (1, 2):
        assert (together.assignment.sum(dim) <= 1 + 1e-4).all()
    for row, (pair, source, target) in enumerate(made):
        alone = DotProduct()(pair, source, target)
        n, m = pair.truth.shape[1:]
        assert torch.allclose(alone.assignment[0], together.assignment[row, :n, :m], rtol=0, atol=1e-10)
        expected = torch.cat([source.local, source.edge], -1) @ torch.cat([target.local, target.edge], -1).mT
        assert torch.allclose(alone.unary, expected)
        assert torch.equal(alone.structure_source, pair.source.adjacency)


@given(sizes, sizes, st.integers(0, 99))
def test_relabelling_nodes_relabels_the_match(n, m, seed) -> None:
    pair, source, target = random_pair(n, m, seed=seed)
    rows, columns = torch.randperm(n), torch.randperm(m)
    graphs = relabel_graph(pair.source, rows), relabel_graph(pair.target, columns)
    moved = GraphPair(*graphs, pair.truth[:, rows][:, :, columns])
    found = DotProduct()(moved, relabel_features(source, rows), relabel_features(target, columns))
    expected = DotProduct()(pair, source, target).assignment[:, rows][:, :, columns]
    assert torch.allclose(found.assignment, expected, rtol=0, atol=1e-10)
