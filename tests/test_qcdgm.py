import math
from dataclasses import replace

import pytest
import torch
from random_pairs import cat_features, random_pair
from torch.nn.functional import relu

from quadmatch import Features, GraphPair, collate
from quadmatch.decode import decode
from quadmatch.losses import LOSSES
from quadmatch.methods import METHODS, QCDGM
from quadmatch.metrics import accuracy, count_matches

PRESETS = ("paper", "released", "compact")


def _scale(kernel: torch.Tensor, rounds: int = 600) -> torch.Tensor:
    """Sinkhorn of a positive square matrix, until rows and columns sum to one."""
    for _ in range(rounds):
        kernel = kernel / kernel.sum(0, keepdim=True)
        kernel = kernel / kernel.sum(1, keepdim=True)
    return kernel


def _weigh(h: torch.Tensor, a: torch.Tensor, kernel) -> torch.Tensor:
    n = len(a)
    values = [[kernel(float(h[i] @ h[j] / h[i].norm() / h[j].norm())) for j in range(n)] for i in range(n)]
    return torch.tensor(values, dtype=torch.float64) * a


def _convolve(head: QCDGM, index: int, h: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    layer = head.layers[index].convolution
    if layer.form == "paper":
        return relu(a @ layer.neighbours(h) + layer.itself(h))
    return (a / a.sum(0, keepdim=True)) @ relu(layer.neighbours(h)) + relu(layer.itself(h))


def _score(head: QCDGM, index: int, h: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    w = head.affinities[index].weight
    return h @ (w + w.T) @ g.T / 2


def _attributes(features: Features, points: torch.Tensor) -> torch.Tensor:
    return torch.cat(
        [features.local[0], features.edge[0], points[0] / points[0].norm(dim=-1, keepdim=True)], -1
    )


def _gradient(x: torch.Tensor, unary: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    u = a - x @ b @ x.T
    return -0.2 * (u.T @ x @ b + u @ x @ b.T) - 0.9 * unary


def _match_as_released(head: QCDGM, pair: GraphPair, source: Features, target: Features) -> torch.Tensor:
    """One pair of equal sizes through what the released code computes, in evaluation mode."""
    a, b = pair.source.adjacency[0], pair.target.adjacency[0]
    h = _convolve(head, 0, _attributes(source, pair.source.points), a)
    g = _convolve(head, 0, _attributes(target, pair.target.points), b)
    s = _score(head, 0, h, g)
    soft = _scale((20 * s / s.max()).softmax(1))
    a_deep, b_deep = _weigh(h, a, math.exp), _weigh(g, b, math.exp)
    h, g = torch.cat([h, soft @ g], 1), torch.cat([g, soft.T @ h], 1)
    h, g = _convolve(head, 1, h, a_deep), _convolve(head, 1, g, b_deep)
    s = x = _score(head, 1, h, g)
    a_deep, b_deep = _weigh(h, a, math.exp), _weigh(g, b, math.exp)
    for _ in range(3):
        for k in range(3):
            downhill = -_gradient(x, s, a_deep, b_deep)
            direction = _scale(downhill - downhill.min() + 1e-10)
            x = x + 2 / (k + 2) * (direction - x)
        x = _scale(x)
    s = s + 0.5 * x
    return _scale((20 * s / s.max()).softmax(1))


def _match_as_written(head: QCDGM, pair: GraphPair, source: Features, target: Features) -> torch.Tensor:
    """One pair of equal sizes through Algorithm 1 under the readings of the documentation."""
    a, b = pair.source.adjacency[0], pair.target.adjacency[0]
    h, g = _attributes(source, pair.source.points), _attributes(target, pair.target.points)
    for index in range(2):
        h, g = (_convolve(head, index, p, _weigh(p, edges, float)) for p, edges in ((h, a), (g, b)))
    unary = x = _scale(_score(head, -1, h, g).exp())
    a_deep, b_deep = _weigh(h, a, float), _weigh(g, b, float)
    for _ in range(3):
        for k in range(5):
            direction = _scale((-_gradient(x, unary, a_deep, b_deep) / 0.1).exp())
            x = x + 2 / (k + 2) * (direction - x)
        x = _scale(x)
    return x


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("preset", ["released", "paper"])
def test_the_presets_equal_their_algorithms_written_out(preset, seed):
    oracle = _match_as_released if preset == "released" else _match_as_written
    torch.manual_seed(seed)
    head = QCDGM("gcn", preset, channels=12, sinkhorn_iterations=1200).double().eval()
    pair, source, target = random_pair(5, 5, seed=seed)
    with torch.no_grad():
        found, wanted = head(pair, source, target).assignment[0], oracle(head, pair, source, target)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


def test_spline_corrects_the_attributes_as_described():
    torch.manual_seed(0)
    head = QCDGM("spline", "paper", channels=12, quadratic_constraint=False).double()
    pair, source, target = random_pair(5, 5)
    first, second = (layer.convolution for layer in head.layers)
    refined = []
    for graph, features in ((pair.source, source), (pair.target, target)):
        p = _attributes(features, graph.points)[None]
        hidden = relu(first(p, graph.points, graph.adjacency))
        refined.append(p + 0.1 * second(hidden, graph.points, graph.adjacency))
    wanted = _score(head, -1, refined[0][0], refined[1][0])
    torch.testing.assert_close(head(pair, source, target).unary[0], wanted)


def test_published_widths():
    def count(module: torch.nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    with torch.device("meta"):
        released, paper, spline = QCDGM(preset="released"), QCDGM(), QCDGM("spline")
    assert [count(layer) for layer in released.layers] == [2 * 1027 * 2050, 2 * 4101 * 2050]
    assert count(released.affinities) == 2 * 2050**2
    assert [count(layer) for layer in paper.layers] == [2 * 1026**2] * 2
    assert [count(layer) for layer in spline.layers] == [26 * 1026**2 + 1026] * 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_component_can_be_switched_off(method, preset):
    pair, source, target = random_pair(6, 6, seed=4)

    def build(**switches) -> QCDGM:
        torch.manual_seed(1)
        return METHODS[method](preset=preset, channels=12, width=16, **switches).double().eval()

    def match(**switches):
        return build(**switches)(pair, source, target)

    full = match()
    plain = match(quadratic_constraint=False)
    assert torch.equal(plain.assignment, full.earlier[-1])
    assert not torch.allclose(plain.assignment, full.assignment)
    binary = match(structural_context=False)
    assert torch.equal(binary.structure_source, pair.source.adjacency)
    assert not torch.equal(full.structure_source, pair.source.adjacency)
    blind = build(geometric_prior=False)
    moved = replace(pair, source=replace(pair.source, points=pair.source.points.flip(-1) + 5))
    same = torch.allclose(blind(moved, source, target).assignment, blind(pair, source, target).assignment)
    assert same == (method == "qcdgm1")  # SplineConv looks at offsets all the same
    assert not torch.allclose(build()(moved, source, target).assignment, full.assignment)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("preset", PRESETS)
def test_the_constraint_has_no_parameters(method, preset):
    on, off = (
        METHODS[method](preset=preset, channels=12, width=8, quadratic_constraint=constraint)
        for constraint in (True, False)
    )
    assert on.state_dict().keys() == off.state_dict().keys()
    off.load_state_dict(on.state_dict())


def test_layers_cross_graph_and_frequencies_are_switches():
    pair, source, target = random_pair(4, 5)
    for refine in ("gcn", "spline"):
        for layers in (1, 3):
            head = QCDGM(
                refine, "compact", channels=12, width=8, layers=layers, cross_graph=True, frequencies=2
            )
            matching = head.double()(pair, source, target)
            assert len(matching.earlier) == layers
            assert len(head.layers) == layers


@pytest.mark.parametrize("refine", ["gcn", "spline"])
def test_merging_keeps_convolutions_narrow_and_nothing_leaks(refine):
    torch.manual_seed(0)
    head = QCDGM(refine, "compact", channels=12, width=8, layers=3, cross_graph=True, merge=True).double()
    head.eval()
    assert [_inputs(layer.convolution) for layer in head.layers] == [8, 8, 8]
    pairs = [random_pair(4, 6, seed=1), random_pair(7, 3, seed=2)]
    joined, sources, targets = zip(*pairs)
    together = head(collate(joined), cat_features(sources), cat_features(targets)).assignment
    for index, (pair, source, target) in enumerate(pairs):
        alone = head(pair, source, target).assignment[0]
        rows, columns = alone.shape
        torch.testing.assert_close(together[index, :rows, :columns], alone)
    other = head(pairs[0][0], pairs[0][1], replace(pairs[0][2], local=pairs[0][2].local.flip(1)))
    assert not torch.allclose(other.earlier[1], head(*pairs[0]).earlier[1])
    wide = QCDGM(refine, "compact", channels=12, width=8, layers=3, cross_graph=True)
    assert [_inputs(layer.convolution) for layer in wide.layers] == [8, 16, 16]


def _inputs(convolution: torch.nn.Module) -> int:
    return (convolution.itself if hasattr(convolution, "itself") else convolution.root).in_features


def test_the_reach_of_a_spline_is_a_switch():
    head = QCDGM("spline", "compact", channels=12, width=8, reach=64.0)
    assert [layer.convolution.extent for layer in head.layers] == [64.0, 64.0]


def test_wrong_switches_are_named():
    with pytest.raises(TypeError, match=r"no switch lambda_, widht"):
        QCDGM(widht=3, lambda_=0.1)
    with pytest.raises(ValueError, match="layers must be at least 1, got 0"):
        QCDGM(layers=0)


def _hide_signal(count: int) -> tuple[GraphPair, Features, Features]:
    """Relabelled copies in which a third of the channels agrees faintly and the rest is loud noise."""
    pairs, sources, targets = [], [], []
    for seed in range(count):
        pair, source, other = random_pair(5, 5, seed=seed, channels=16, dtype=torch.float32)
        order = pair.truth[0].int().argmax(0)
        points, adjacency = pair.source.points[:, order], pair.source.adjacency[:, order][:, :, order]
        pairs.append(replace(pair, target=replace(pair.target, points=points, adjacency=adjacency)))
        faint = 0.3 * source.local
        sources.append(Features(faint, source.edge, source.whole))
        targets.append(Features(faint[:, order], other.edge, source.whole))
    return collate(pairs), cat_features(sources), cat_features(targets)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("preset", PRESETS)
def test_learns_which_features_to_trust(method, preset):
    torch.manual_seed(0)
    batch = _hide_signal(12)
    head = METHODS[method](preset=preset, channels=16, width=32, geometric_prior=False)
    optimiser, loss = torch.optim.Adam(head.parameters(), 1e-2), LOSSES["false_matching"]()

    def evaluate() -> float:
        found = decode(head.eval()(*batch), batch[0].mask, weight=0.0)
        return accuracy(count_matches(found.assignment, batch[0].truth))

    before = evaluate()
    head.train()
    for _ in range(20):
        optimiser.zero_grad()
        loss(head(*batch), batch[0]).backward()
        optimiser.step()
    assert evaluate() > before + 0.2
