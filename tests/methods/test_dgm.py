import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from random_pairs import make_features, random_pair
from torch.nn.functional import relu

from quadmatch import Features, GraphPair, collate
from quadmatch.decode import decode
from quadmatch.evaluation.report import accuracy, count_matches
from quadmatch.layers.network import SiameseNetwork
from quadmatch.layers.quadratic_constraint import QuadraticConstraint
from quadmatch.losses import LOSSES
from quadmatch.methods import METHODS
from quadmatch.methods.dgm import build_compact, build_published

AS_RELEASED = {"unary": "scores", "output": "residual", "direction": "shifted", "inner": 3, "divide": True}
"""The constraint of the released code, as options."""


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


def _convolve(head: SiameseNetwork, index: int, h: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    layer = head.layers[index].convolution
    if layer.form == "paper":
        return relu(a @ layer.neighbours(h) + layer.itself(h))
    return (a / a.sum(0, keepdim=True)) @ relu(layer.neighbours(h)) + relu(layer.itself(h))


def _score(head: SiameseNetwork, index: int, h: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    w = head.affinities[index].weight
    return h @ (w + w.T) @ g.T / 2


def _attributes(features: Features, points: torch.Tensor) -> torch.Tensor:
    return torch.cat([features.local[0], features.edge[0], points[0] / points[0].norm(dim=-1, keepdim=True)], -1)


def _gradient(x: torch.Tensor, unary: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    u = a - x @ b @ x.T
    return -0.2 * (u.T @ x @ b + u @ x @ b.T) - 0.9 * unary


def _match_as_released(head: SiameseNetwork, pair: GraphPair, source: Features, target: Features) -> torch.Tensor:
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


def _match_as_written(head: SiameseNetwork, pair: GraphPair, source: Features, target: Features) -> torch.Tensor:
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
@pytest.mark.parametrize("reading", ["released", "paper"])
def test_the_readings_equal_their_algorithms_written_out(reading, seed):
    oracle = _match_as_released if reading == "released" else _match_as_written
    torch.manual_seed(seed)
    many = {"sinkhorn_iterations": 1200}
    inner = build_published(reading, "gcn", channels=12, **many).double().eval()
    head = QuadraticConstraint(inner, **many, **(AS_RELEASED if reading == "released" else {})).eval()
    pair, source, target = random_pair(5, 5, seed=seed)
    with torch.no_grad():
        found, wanted = head(pair, source, target).assignment[0], oracle(inner, pair, source, target)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


def test_after_the_released_number_of_half_steps_the_match_is_theirs(monkeypatch):
    """Their Sinkhorn begins with columns and ends with rows, ours the other way round, both after twenty half-steps."""
    torch.manual_seed(0)
    inner = build_published("released", "gcn", channels=12).double().eval()
    head = QuadraticConstraint(inner, **AS_RELEASED).eval()
    monkeypatch.setattr(_scale, "__defaults__", (10,))  # a round of theirs is two half-steps
    largest = 0.0
    for seed in range(20):
        pair, source, target = random_pair(7, 7, seed=seed)
        with torch.no_grad():
            found, wanted = head(pair, source, target).assignment[0], _match_as_released(inner, pair, source, target)
        assert torch.equal(found.argmax(1), wanted.argmax(1))
        largest = max(largest, float((found - wanted).abs().max()))
    assert 1e-6 < largest < 0.05  # the same match, and not the same numbers: docs/methods.md says why


def test_spline_corrects_the_attributes_as_described():
    torch.manual_seed(0)
    head = build_published("paper", "spline", channels=12).double()
    pair, source, target = random_pair(5, 5)
    first, second = (layer.convolution for layer in head.layers)
    refined = []
    for graph, features in ((pair.source, source), (pair.target, target)):
        p = _attributes(features, graph.points)[None]
        hidden = relu(first(p, graph))
        refined.append(p + 0.1 * second(hidden, graph))
    wanted = _score(head, -1, refined[0][0], refined[1][0])
    torch.testing.assert_close(head(pair, source, target).unary[0], wanted)


def test_published_widths():
    def count(module: torch.nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    with torch.device("meta"):
        released, paper = (build_published(reading, "gcn") for reading in ("released", "paper"))
        spline = build_published("paper", "spline")
    assert [count(layer) for layer in released.layers] == [2 * 1027 * 2050, 2 * 4101 * 2050]
    assert count(released.affinities) == 2 * 2050**2
    assert [count(layer) for layer in paper.layers] == [2 * 1026**2] * 2
    assert [count(layer) for layer in spline.layers] == [26 * 1026**2 + 1026] * 2


DGM = [name for name in METHODS if name.startswith("dgm")]


@pytest.mark.parametrize("method", DGM)
def test_every_component_can_be_switched_off(method):
    pair, source, target = random_pair(6, 6, seed=4)

    def build(**switches) -> SiameseNetwork:
        torch.manual_seed(1)
        return METHODS[method](channels=12, width=16, **switches).double().eval()

    full = build()(pair, source, target)
    constrained = QuadraticConstraint(build())(pair, source, target)
    assert torch.equal(full.assignment, constrained.release().assignment)
    assert not torch.allclose(full.assignment, constrained.assignment)
    binary = build(structural_context=False)(pair, source, target)
    assert torch.equal(binary.structure_source, pair.source.adjacency)
    assert not torch.equal(full.structure_source, pair.source.adjacency)
    blind = build(geometric_prior=False)
    moved = replace(pair, source=replace(pair.source, points=pair.source.points.flip(-1) + 5))
    same = torch.allclose(blind(moved, source, target).assignment, blind(pair, source, target).assignment)
    assert same == method.startswith("dgm1")  # SplineConv looks at offsets all the same
    assert not torch.allclose(build()(moved, source, target).assignment, full.assignment)


@pytest.mark.parametrize(
    "switches", [{"kernel": "cosine"}, {"frame": "graph"}, {"frequencies": 2}, {"merge": True}, {"cross_graph": False}]
)
def test_every_switch_of_the_compact_network_changes_it(switches):
    pair, source, target = random_pair(6, 6, seed=4)
    usual, other = [], []
    for made, given in ((usual, {}), (other, switches)):
        torch.manual_seed(1)
        head = build_compact("gcn", channels=12, width=16, **given).double().eval()
        made.append(head(pair, source, target))
    same = torch.equal(usual[0].assignment, other[0].assignment)
    assert not (same and torch.equal(usual[0].structure_source, other[0].structure_source))


def test_dropout_is_of_training_alone():
    pair, source, target = random_pair(6, 6, seed=4)
    head = build_compact("gcn", channels=12, width=16, dropout=0.5).double()
    assert sum(isinstance(part, torch.nn.Dropout) and part.p == 0.5 for part in head.modules()) == 3
    first, second = (head.train()(pair, source, target).assignment for _ in range(2))
    assert not torch.allclose(first, second)
    first, second = (head.eval()(pair, source, target).assignment for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("refine", ["gcn", "spline"])
def test_every_dropout_drops(refine):
    """Of the image features, of what each layer adds and of each merge: one at a time."""
    pair, source, target = random_pair(6, 6, seed=4)
    head = build_compact(refine, channels=12, width=16, dropout=0.5, cross_graph=True, merge=True).double().train()
    places = [part for part in head.modules() if isinstance(part, torch.nn.Dropout)]
    assert len(places) == 4
    for place in places:
        for other in places:
            other.p = 0.5 if other is place else 0.0
        first, second = (head(pair, source, target).assignment for _ in range(2))
        assert not torch.allclose(first, second)


def test_layers_cross_graph_and_frequencies_are_switches():
    pair, source, target = random_pair(4, 5)
    for refine in ("gcn", "spline"):
        for layers in (1, 3):
            head = build_compact(refine, channels=12, width=8, layers=layers, cross_graph=True, frequencies=2)
            matching = head.double()(pair, source, target)
            assert len(matching.stages) == layers
            assert len(head.layers) == layers


@pytest.mark.parametrize("refine", ["gcn", "spline"])
def test_merging_keeps_convolutions_narrow_and_nothing_leaks(refine):
    torch.manual_seed(0)
    head = build_compact(refine, channels=12, width=8, layers=3, cross_graph=True, merge=True).double()
    head.eval()
    assert [_inputs(layer.convolution) for layer in head.layers] == [8, 8, 8]
    pairs = [random_pair(4, 6, seed=1), random_pair(7, 3, seed=2)]
    joined, sources, targets = zip(*pairs)
    together = head(collate(joined), Features.cat(sources), Features.cat(targets)).assignment
    for index, (pair, source, target) in enumerate(pairs):
        alone = head(pair, source, target).assignment[0]
        rows, columns = alone.shape
        torch.testing.assert_close(together[index, :rows, :columns], alone)
    other = head(pairs[0][0], pairs[0][1], _flip(pairs[0][2]))
    assert not torch.allclose(other.earlier[1].assignment, head(*pairs[0]).earlier[1].assignment)
    wide = build_compact(refine, channels=12, width=8, layers=3, cross_graph=True)
    assert [_inputs(layer.convolution) for layer in wide.layers] == [8, 16, 16]


def _flip(features: Features) -> Features:
    return replace(features, maps={name: rows.flip(1) for name, rows in features.maps.items()})


def _inputs(convolution: torch.nn.Module) -> int:
    return (convolution.itself if hasattr(convolution, "itself") else convolution.root).in_features


def test_the_reach_of_a_spline_is_a_switch():
    head = build_compact("spline", channels=12, width=8, reach=64.0)
    assert [layer.convolution.extent for layer in head.layers] == [64.0, 64.0]


def test_a_network_needs_a_layer():
    for build in (build_compact, partial(build_published, "paper")):
        with pytest.raises(ValueError, match="layers must be at least 1, got 0"):
            build("gcn", layers=0)


def _hide_signal(count: int) -> tuple[GraphPair, Features, Features]:
    """Relabelled copies in which a third of the channels agrees faintly and the rest is loud noise."""
    pairs, sources, targets = [], [], []
    for seed in range(count):
        pair, source, other = random_pair(5, 5, seed=seed, channels=16, dtype=torch.float32)
        order = pair.truth[0].int().argmax(0)
        points, adjacency = pair.source.points[:, order], pair.source.adjacency[:, order][:, :, order]
        pairs.append(replace(pair, target=replace(pair.target, points=points, adjacency=adjacency)))
        faint = 0.3 * source.local
        sources.append(make_features(faint, source.edge, source.whole))
        targets.append(make_features(faint[:, order], other.edge, source.whole))
    return collate(pairs), Features.cat(sources), Features.cat(targets)


@pytest.mark.parametrize("method", DGM)
def test_learns_which_features_to_trust(method):
    torch.manual_seed(0)
    batch = _hide_signal(12)
    constraint = AS_RELEASED if method.endswith("released") else {"outer": 1}
    head = QuadraticConstraint(METHODS[method](channels=16, width=32, geometric_prior=False), **constraint)
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
