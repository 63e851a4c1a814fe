from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay

from quadmatch.delaunay import CONSTRUCTIONS, build_graph, delaunay, fully_connected, nearest

EVERY = [*CONSTRUCTIONS.values(), partial(nearest, k=2)]
grid = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=0, max_size=9)
anywhere = st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=0, max_size=9)
nearly_a_line = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e-13)), min_size=0, max_size=9)


def _points(rows: list[tuple[float, float]], scale: float = 1.0) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).reshape(-1, 2) * scale


@pytest.mark.parametrize("construction", EVERY)
@given(rows=grid | anywhere | nearly_a_line, scale=st.sampled_from([1.0, 1e-200, 1e305]), seed=st.integers(0, 9))
def test_every_construction_is_a_defined_graph(construction, rows, scale, seed):
    points = _points(rows, scale)
    graph = construction(points)
    assert torch.equal(graph, graph.T)
    assert ((graph == 0) | (graph == 1)).all()
    assert not graph.diagonal().any()
    if len(points) > 1:
        assert (graph.sum(1) > 0).all()
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(seed))
    assert torch.equal(construction(points[order]), graph[order][:, order])


@given(rows=grid | anywhere | nearly_a_line)
def test_delaunay_is_connected(rows):
    graph = delaunay(_points(rows))
    assert len(rows) == 0 or connected_components(graph.numpy())[0] == 1


def test_delaunay_agrees_with_scipy_in_general_position():
    points = torch.rand(60, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = torch.zeros(60, 60, dtype=torch.float64)
    for simplex in Delaunay(points.numpy()).simplices:
        for i in simplex:
            for j in simplex:
                expected[i, j] = float(i != j)
    assert torch.equal(delaunay(points), expected)
    assert torch.equal(delaunay(points * 1e-9 + 1), delaunay((points * 1e-9 + 1 - 1) * 1e9))


def test_small_and_degenerate_graphs():
    assert delaunay(torch.zeros(0, 2)).shape == (0, 0)
    assert delaunay(torch.zeros(1, 2)).tolist() == [[0]]
    assert delaunay(torch.tensor([[0.0, 0], [1, 2]])).tolist() == [[0, 1], [1, 0]]
    line = delaunay(torch.tensor([[2.0, 4], [0, 0], [3, 6], [1, 2]]))
    assert line.tolist() == [[0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 0, 0], [1, 1, 0, 0]]
    equal = delaunay(torch.ones(4, 2))
    assert torch.equal(equal, fully_connected(torch.ones(4, 2)))


def test_twins_are_joined_and_share_neighbours():
    points = torch.rand(8, 2, generator=torch.Generator().manual_seed(1))
    plain = delaunay(points)
    doubled = delaunay(torch.cat([points, points[3:4]]))
    assert torch.equal(doubled[:8, :8], plain)
    assert torch.equal(doubled[8, :8], plain[3] + torch.eye(8)[3])


def test_nearest_joins_the_nearest_and_all_that_tie():
    points = torch.tensor([[0.0, 0], [1, 0], [-1, 0], [5, 0], [5.5, 0]])
    assert nearest(points, 1).tolist() == [
        [0, 1, 1, 0, 0],
        [1, 0, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
        [0, 0, 0, 1, 0],
    ]
    assert torch.equal(nearest(points, 99), fully_connected(points))


def test_build_graph_takes_names_and_functions():
    points = torch.rand(7, 2, dtype=torch.float64)
    graph = build_graph(points)
    assert graph.adjacency.dtype == torch.float64
    assert graph.mask.all()
    assert torch.equal(graph.points[0], points)
    assert torch.equal(build_graph(points, partial(nearest, k=1)).adjacency[0], nearest(points, 1))


@pytest.mark.parametrize("construction", EVERY)
def test_points_that_are_not_numbers_are_refused(construction):
    for bad in (np.nan, np.inf):
        points = torch.rand(5, 2)
        points[3, 1] = bad
        with pytest.raises(ValueError, match=r"points must be finite; point 3"):
            construction(points)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="k must be at least 1"):
        nearest(torch.rand(4, 2), 0)
    with pytest.raises(ValueError, match="construction must be one of delaunay"):
        build_graph(torch.rand(4, 2), "voronoi")
    with pytest.raises((ValueError, TypeError), match="points"):
        delaunay(torch.rand(4, 3))
