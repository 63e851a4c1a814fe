import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_pairs import random_pair

from quadmatch.layers.affinity import BilinearAffinity, CosineAffinity, divide_by_largest
from quadmatch.layers.attributes import NodeAttributes, centre_points, encode_points
from quadmatch.layers.cross_graph import concatenate_other, join_graphs, join_nodes
from quadmatch.layers.graph_conv import GraphConv, normalise_columns
from quadmatch.layers.nodes import map_nodes
from quadmatch.layers.refinement import RefineLayer
from quadmatch.layers.structure import normalise_rows, weigh_adjacency

KERNELS = ("linear", "cosine", "exp_cosine")


def _random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(max_examples=15)
@given(st.integers(0, 5), st.integers(0, 100), st.sampled_from(["paper", "released"]))
def test_graph_conv_equals_a_loop_over_nodes(size, seed, form):
    torch.manual_seed(seed)
    layer = GraphConv(3, 4, form=form).double()
    features, adjacency = _random(2, size, 3, seed=seed), _random(2, size, size, seed=seed + 1)
    adjacency[torch.rand(2, size, size) < 0.5] = 0
    out = layer(features, adjacency)
    for b in range(2):
        messages, selves = layer.neighbours(features[b]), layer.itself(features[b])
        for i in range(size):
            total = torch.zeros(4, dtype=torch.float64)
            for j in range(size):
                if form == "paper":
                    total += adjacency[b, i, j] * messages[j]
                elif adjacency[b, i, j] != 0:
                    total += adjacency[b, i, j] / adjacency[b, :, j].abs().sum() * messages[j].clamp(min=0)
            wanted = (total + selves[i]).clamp(min=0) if form == "paper" else total + selves[i].clamp(min=0)
            torch.testing.assert_close(out[b, i], wanted)


def test_columns_of_zeros_stay_zero_and_get_a_gradient():
    adjacency = torch.tensor([[[0.0, 2.0], [0.0, 6.0]]], requires_grad=True)
    normal = normalise_columns(adjacency)
    assert normal.tolist() == [[[0.0, 0.25], [0.0, 0.75]]]
    normal.sum().backward()
    assert adjacency.grad.isfinite().all()


@given(st.integers(0, 5), st.integers(0, 100), st.sampled_from(KERNELS))
def test_structure_equals_a_loop_over_edges(size, seed, kernel):
    features = _random(1, size, 3, seed=seed)
    adjacency = (_random(1, size, size, seed=seed + 1) > 0).double()
    structure = weigh_adjacency(features, adjacency, kernel)
    for i in range(size):
        for j in range(size):
            inner = float(features[0, i] @ features[0, j])
            cosine = inner / float(features[0, i].norm() * features[0, j].norm())
            value = {"linear": inner, "cosine": cosine, "exp_cosine": math.exp(cosine)}[kernel]
            assert float(structure[0, i, j]) == pytest.approx(value * float(adjacency[0, i, j]), abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_of_zeros_have_no_direction_and_no_gradient(dtype):
    features = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1e-30, 0.0]], dtype=dtype, requires_grad=True)
    rows = normalise_rows(features)
    rows.sum().backward()
    torch.testing.assert_close(rows[1], torch.tensor([0.6, 0.8], dtype=dtype))
    assert not rows[0].any()
    assert features.grad.isfinite().all()
    assert not features.grad[0].any()


def test_bilinear_affinity_starts_near_the_inner_product_and_is_symmetric():
    torch.manual_seed(0)
    layer = BilinearAffinity(64).double()
    a, b = _random(2, 3, 64), _random(2, 5, 64, seed=1)
    torch.testing.assert_close(layer(a, b), layer(b, a).mT)
    noise = layer.weight - torch.eye(64)
    assert noise.abs().max() <= 1 / 8 + 1e-6
    assert noise.std() > 0.05


def test_cosine_affinity_is_bounded_by_its_scale():
    layer = CosineAffinity(scale=10.0).double()
    a = _random(1, 4, 6)
    torch.testing.assert_close(layer(a, 3 * a).diagonal(dim1=1, dim2=2), torch.full((1, 4), 10.0).double())
    layer.log_scale.data.fill_(50.0)
    assert layer(a, a).abs().max() <= 100 + 1e-6


def test_divide_by_largest_looks_at_its_own_pair_only():
    scores = torch.tensor([[[2.0, 9.0], [4.0, 9.0]], [[-2.0, -1.0], [-3.0, -4.0]], [[5.0, 5.0], [5.0, 5.0]]])
    mask = torch.tensor([[[True, False], [True, False]], [[True, True], [True, True]], [[False] * 2] * 2])
    divided = divide_by_largest(scores, mask)
    assert divided[0, :, 0].tolist() == [0.5, 1.0]
    assert torch.equal(divided[1:], scores[1:])
    assert divide_by_largest(scores[:, :0], mask[:, :0]).shape == (3, 0, 2)


def test_points_become_attributes():
    points = torch.tensor([[[0.0, 0.0], [256.0, 128.0], [30.0, 40.0]]])
    direction = encode_points(points, "direction")
    assert direction[0, 0].tolist() == [0.0, 0.0]
    torch.testing.assert_close(direction[0, 2], torch.tensor([0.6, 0.8]))
    box = encode_points(points, "box", frequencies=2)
    assert box.shape == (1, 3, 10)
    torch.testing.assert_close(box[0, :, :2], torch.tensor([[-0.5, -0.5], [0.5, 0.0], [-0.3828125, -0.34375]]))
    torch.testing.assert_close(box[0, 1, 2:6], torch.tensor([1.0, 0.0, 0.0, 1.0]), atol=1e-6, rtol=0)


def test_points_in_the_frame_of_their_graph_forget_where_and_how_large_it_is():
    points = 256 * torch.rand(2, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    centred = centre_points(points)
    torch.testing.assert_close(centred, centre_points(3 * points + torch.tensor([70.0, -9.0])))
    torch.testing.assert_close(centred.mean(1), torch.zeros(2, 2, dtype=torch.float64))
    torch.testing.assert_close(centred.square().sum(-1).mean(1).sqrt(), torch.full((2,), 0.25, dtype=torch.float64))
    both = encode_points(points, "both", frequencies=1)
    assert both.shape == (2, 5, 12)
    torch.testing.assert_close(both[..., 6:8], centred)
    torch.testing.assert_close(both[..., :6], encode_points(points, "box", frequencies=1))


def test_padding_has_no_part_in_the_frame_of_a_graph():
    points = 256 * torch.rand(1, 4, 2, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[True, True, True, False]])
    centred = centre_points(points, mask)
    torch.testing.assert_close(centred[:, :3], centre_points(points[:, :3]))
    assert not centred[:, 3].any()
    assert not centre_points(points, torch.zeros_like(mask)).any()


def test_a_graph_of_one_place_is_at_its_centre():
    places = torch.full((1, 3, 2), 77.7, requires_grad=True)
    centred = centre_points(places)
    assert centred.abs().max() < 0.01
    centred.sum().backward()
    assert places.grad is not None
    assert places.grad.isfinite().all()


@pytest.mark.parametrize(
    ("prior", "width", "channels"), [(True, None, 8), (False, None, 6), (True, 5, 5), (False, 5, 5)]
)
def test_attributes_have_the_channels_they_say(prior, width, channels):
    layer = NodeAttributes(6, prior=prior, width=width, frame="box")
    out = layer(torch.rand(2, 3, 6), torch.rand(2, 3, 2))
    assert out.shape[-1] == layer.channels == channels
    moved = layer(torch.ones(2, 3, 6), 256 * torch.rand(2, 3, 2))
    assert torch.allclose(moved[0], moved[1]) != prior


def test_joined_graphs_keep_their_nodes_and_lose_edges_to_padding():
    pair, *_ = random_pair(3, 5)
    source = pair.source
    dirty = type(source)(source.points, torch.tensor([[True, True, False]]), torch.ones_like(source.adjacency))
    both = join_graphs(dirty, pair.target)
    assert both.adjacency[0].sum() == 4
    assert torch.equal(both.adjacency[1], pair.target.adjacency[0])
    assert both.mask.sum(1).tolist() == [2, 5]
    assert torch.equal(both.points[0, :3], source.points[0])


@given(st.integers(0, 4), st.integers(0, 5), st.integers(0, 99))
def test_padding_is_left_out_of_node_wise_work(batch, size, seed):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(batch, size, 3, generator=generator, dtype=torch.float64)
    mask = torch.rand(batch, size, generator=generator) < 0.6
    junk = features.masked_fill(~mask[..., None], torch.nan).requires_grad_()
    layer = torch.nn.Linear(3, 2).double()
    out = map_nodes(layer, junk, mask)
    torch.testing.assert_close(out, layer(features).masked_fill(~mask[..., None], 0))
    out.sum().backward()
    assert junk.grad.isfinite().all()
    assert torch.equal(map_nodes(layer, features, None), layer(features))


def test_each_node_gets_what_it_is_matched_to():
    a, b = _random(1, 2, 3), _random(1, 3, 3, seed=1)
    match = torch.tensor([[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]]).double()
    ours, theirs = concatenate_other(a, b, match)
    assert torch.equal(ours[0, 0], torch.cat([a[0, 0], b[0, 1]]))
    assert torch.equal(theirs[0, 1], torch.cat([b[0, 1], a[0, 0]]))
    assert not ours[0, 1, 3:].any()
    assert join_nodes(ours, theirs).shape == (2, 3, 6)


BAD_NAMES = """
GraphConv(2, 2, form='x')
weigh_adjacency(torch.zeros(1, 1, 1), torch.zeros(1, 1, 1), 'x')
encode_points(torch.zeros(1, 1, 2), 'x')
RefineLayer(2, 2, refine='x')
SplineConv(2, 2, aggregation='x')
QuadraticStep(unary='x')
QuadraticStep(output='x')
false_matching(reading='x')
build_compact('x')
"""


def test_bad_names_are_refused():
    """In a process of its own: here the annotations would refuse them first."""
    program = """
import torch
from quadmatch.layers.attributes import encode_points
from quadmatch.layers.graph_conv import GraphConv
from quadmatch.layers.quadratic_constraint import QuadraticStep
from quadmatch.layers.refinement import RefineLayer
from quadmatch.layers.spline_conv import SplineConv
from quadmatch.layers.structure import weigh_adjacency
from quadmatch.losses import false_matching
from quadmatch.methods.dgm import build_compact
for line in BAD.strip().splitlines():
    try:
        eval(line)
    except ValueError as error:
        assert "'x'" in str(error) and "must be" in str(error), error
    else:
        raise SystemExit(f"accepted: {line}")
"""
    subprocess.run([sys.executable, "-c", f"BAD = {BAD_NAMES!r}\n{program}"], check=True)


def _layers() -> dict:
    torch.manual_seed(0)
    paper, released = (GraphConv(3, 2, form=form).double() for form in ("paper", "released"))
    bilinear, cosine = BilinearAffinity(3).double(), CosineAffinity().double()
    attributes = NodeAttributes(3, width=4, frame="box", frequencies=1).double()
    residual = RefineLayer(3, 3, residual=True).double()
    pair, *_ = random_pair(4, 4)
    features, other, weights = _random(1, 4, 3), _random(1, 4, 3, seed=1), _random(1, 4, 4, seed=2).abs()
    return {
        "graph_conv paper": (paper, features, weights),
        "graph_conv released": (released, features, weights),
        "linear": (lambda f, a: weigh_adjacency(f, a, "linear"), features, weights),
        "cosine": (lambda f, a: weigh_adjacency(f, a, "cosine"), features, weights),
        "exp_cosine": (lambda f, a: weigh_adjacency(f, a, "exp_cosine"), features, weights),
        "bilinear": (bilinear, features, other),
        "cosine affinity": (cosine, features, other),
        "divide": (lambda s: divide_by_largest(s, torch.ones(1, 4, 4, dtype=torch.bool)), weights),
        "cross graph": (concatenate_other, features, other, weights),
        "attributes": (attributes, features, pair.source.points + 1),
        "residual": (lambda f, s, a: residual(f, s, pair.source, a), features, other, weights),
    }


@pytest.mark.parametrize("name", _layers())
def test_gradients_of_inputs_and_parameters(name):
    layer, *inputs = _layers()[name]
    inputs = [value.clone().requires_grad_() for value in inputs]
    parameters = list(layer.parameters()) if isinstance(layer, torch.nn.Module) else []
    assert torch.autograd.gradcheck(lambda *values: layer(*values[: len(inputs)]), (*inputs, *parameters))
