import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quadmatch.graph import Graph
from quadmatch.layers.spline_conv import SplineConv, plan_messages, weigh_knots


def _inputs(size: int, seed: int, batch: int = 2, density: float = 0.5):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(batch, size, 3, generator=generator, dtype=torch.float64)
    points = 320 * torch.rand(batch, size, 2, generator=generator, dtype=torch.float64)
    adjacency = (torch.rand(batch, size, size, generator=generator) < density).double()
    return features, points, adjacency


def _join(points, adjacency):
    """Graphs whose nodes are all real."""
    return Graph(points, torch.ones(points.shape[:2], dtype=torch.bool), adjacency)


def _convolve_by_loops(layer: SplineConv, features, points, adjacency):
    """Every edge, every knot: the product of two hats, written out."""
    size = layer.kernel_size
    out = torch.zeros(*features.shape[:2], layer.weight.shape[2], dtype=features.dtype)
    for b in range(features.shape[0]):
        for i in range(features.shape[1]):
            messages = []
            for j in range(features.shape[1]):
                if adjacency[b, i, j] == 0:
                    continue
                offset = 0.5 + 0.5 * (points[b, i] - points[b, j]) / layer.extent
                x, y = (offset.clamp(0, 1) * (size - 1)).tolist()
                kernel = torch.zeros_like(layer.weight[0])
                for k in range(size):
                    for h in range(size):
                        hat = max(0.0, 1 - abs(x - k)) * max(0.0, 1 - abs(y - h))
                        kernel = kernel + hat * layer.weight[k * size + h]
                messages.append(features[b, j] @ kernel)
            if messages:
                stacked = torch.stack(messages)
                out[b, i] = stacked.amax(0) if layer.aggregation == "max" else stacked.mean(0)
            out[b, i] += layer.root(features[b, i])
    return out


@given(st.integers(0, 5), st.integers(0, 1000), st.sampled_from([2, 3, 5]), st.sampled_from(["max", "mean"]))
def test_equals_loops_over_edges_and_knots(size, seed, kernel_size, aggregation):
    torch.manual_seed(seed)
    layer = SplineConv(3, 4, kernel_size=kernel_size, aggregation=aggregation).double()
    features, *edges = _inputs(size, seed)
    found = layer(features, _join(*edges))
    torch.testing.assert_close(found, _convolve_by_loops(layer, features, *edges), rtol=1e-10, atol=1e-10)


@given(st.floats(-0.5, 1.5), st.floats(-0.5, 1.5), st.integers(2, 6))
def test_hats_interpolate(x, y, size):
    """Weights sum to one and reproduce linear functions of the clipped position."""
    index, weight = weigh_knots(torch.tensor([[x, y]], dtype=torch.float64), size)
    assert index.min() >= 0
    assert index.max() < size * size
    assert float(weight.sum()) == pytest.approx(1)
    assert weight.min() >= 0
    clipped = [min(max(value, 0.0), 1.0) * (size - 1) for value in (x, y)]
    assert float((weight * (index // size)).sum()) == pytest.approx(clipped[0], abs=1e-9)
    assert float((weight * (index % size)).sum()) == pytest.approx(clipped[1], abs=1e-9)


@pytest.mark.parametrize("aggregation", ["max", "mean"])
def test_gradients(aggregation):
    torch.manual_seed(0)
    layer = SplineConv(3, 2, kernel_size=3, aggregation=aggregation).double()
    features, points, adjacency = _inputs(4, 3)
    wanted = (features.requires_grad_(), points.requires_grad_(), *layer.parameters())
    assert torch.autograd.gradcheck(lambda f, p, *_: layer(f, _join(p, adjacency)), wanted)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("density", [0.0, 2.0])
def test_any_number_of_edges_gives_gradients(size, density):
    layer = SplineConv(3, 4).double()
    features, *edges = _inputs(size, 0, density=density)
    out = layer(features, _join(*edges))
    out.square().sum().backward()
    assert out.shape == (2, size, 4)
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_a_node_without_neighbours_keeps_its_root_only():
    layer = SplineConv(3, 4).double()
    features, points, adjacency = _inputs(4, 1, density=2.0)
    adjacency[:, 0] = 0
    torch.testing.assert_close(layer(features, _join(points, adjacency))[:, 0], layer.root(features[:, 0]))


def test_padding_and_batch_mates_do_not_matter():
    layer = SplineConv(3, 4).double()
    features, points, adjacency = _inputs(5, 2, batch=3)
    together = layer(features, _join(points, adjacency))
    bigger = torch.nn.functional.pad(adjacency, (0, 2, 0, 2))
    junk = torch.full((3, 2, 3), 7.0, dtype=torch.float64)
    padded = layer(torch.cat([features, junk], 1), _join(torch.cat([points, junk[..., :2]], 1), bigger))
    torch.testing.assert_close(padded[:, :5], together, rtol=1e-12, atol=1e-12)
    alone = layer(features[1:2], _join(points[1:2], adjacency[1:2]))
    torch.testing.assert_close(alone[0], together[1], rtol=1e-12, atol=1e-12)


def test_no_product_is_asked_for_in_vain():
    points = torch.tensor([[[0.0, 0.0], [300.0, 300.0], [32.0, 0.0]]])
    plan = plan_messages(_join(points, torch.tensor([[[0, 1, 0], [1, 0, 0], [1, 0, 0]]]).double()), 5, 128.0)
    # Two edges reach a corner of the kernel, the third lies between two knots of its middle row.
    assert plan.counts == [1] + 11 * [0] + [1] + 4 * [0] + [1] + 6 * [0] + [1]
    assert sorted(plan.senders.tolist()) == [0, 0, 0, 1]
    torch.testing.assert_close(plan.weights.sum(1), torch.ones(3))


def test_a_kernel_has_two_knots_at_least():
    with pytest.raises(ValueError, match="kernel_size"):
        SplineConv(2, 2, kernel_size=1)
