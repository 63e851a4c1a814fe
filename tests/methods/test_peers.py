"""Each method beside its formulas, written out with loops or with the matrices that the package never builds."""

import math
from dataclasses import replace

import pytest
import torch
from random_pairs import make_features, random_pair
from torch.nn.functional import relu

from quadmatch import GraphPair
from quadmatch.layers.association import AssociationConv, count_neighbours
from quadmatch.layers.block_affinity import BlockAffinity
from quadmatch.layers.channel_conv import ChannelConv
from quadmatch.layers.graph_network import Association, GraphNetworkBlock, Places
from quadmatch.layers.histograms import describe_edges
from quadmatch.layers.learned_graph import BalancedConv, LearnedEdges
from quadmatch.layers.network import Assign
from quadmatch.losses import LOSSES
from quadmatch.methods import METHODS
from quadmatch.solvers.lawler.operator import list_edges, mark_edges
from quadmatch.solvers.linear.sinkhorn import sinkhorn


def build(name: str, **options) -> torch.nn.Module:
    torch.manual_seed(0)
    return METHODS[name](channels=12, **{**METHODS[name].small, **options}).double().eval()


def test_block_affinities_begin_near_half_of_the_identity() -> None:
    torch.manual_seed(0)
    affinity, bound = BlockAffinity(50), 1 / math.sqrt(2 * 50)
    for matrix in (affinity.same, affinity.crossed):
        rest = (matrix - torch.eye(50) / 2).detach()
        assert 0.95 * bound < rest.abs().max() <= bound + 1e-6
        assert rest.mean().abs() < 0.1 * bound


def build_matrix(affinity: BlockAffinity, pair: GraphPair, source, target) -> torch.Tensor:
    """K of one pair as an N·M × N·M matrix, edge by edge."""
    n, m = pair.truth.shape[1:]
    one, two = (relu(w + w.T) for w in (affinity.same, affinity.crossed))
    block = torch.cat([torch.cat([one, two], 1), torch.cat([two, one], 1)])
    k = torch.zeros(n, m, n, m, dtype=torch.float64)
    for i in range(n):
        for x in range(m):
            k[i, x, i, x] = source.local[0, i] @ target.local[0, x]
    for i, j in pair.source.adjacency[0].nonzero().tolist():
        for x in range(m):
            for y in range(m):
                if x != y if affinity.complete else pair.target.adjacency[0, x, y]:
                    edge = torch.cat([source.edge[0, i], source.edge[0, j]])
                    k[i, x, j, y] = edge @ block @ torch.cat([target.edge[0, x], target.edge[0, y]])
    return k.view(n * m, n * m)


@torch.no_grad()
@pytest.mark.parametrize("complete", [True, False])
def test_gmn_is_power_iteration_on_the_matrix(complete):
    head = build("gmn", complete=complete)
    pair, source, target = random_pair(4, 5, seed=3)
    k, v = build_matrix(head.affinity, pair, source, target), torch.ones(20, dtype=torch.float64)
    for _ in range(25):
        v = k @ v / (k @ v).norm()
    matching = head(pair, source, target)
    torch.testing.assert_close(matching.unary[0], v.view(4, 5))
    torch.testing.assert_close(matching.assignment, sinkhorn(200 * v.view(1, 4, 5), temperature=1.0))


@torch.no_grad()
def test_ngm_is_a_network_on_the_matrix():
    torch.manual_seed(1)
    pair, source, target = random_pair(4, 3, seed=2)
    affinity, layer = BlockAffinity(6).double(), AssociationConv(2, 5, Assign(0.05)).double()
    operator = affinity(pair, source, target)
    candidates = torch.rand(1, 4, 3, 2, dtype=torch.float64)
    found = layer(candidates, operator, count_neighbours(operator.source, operator.target), pair.mask)
    k = build_matrix(affinity, pair, source, target)
    rows = candidates.view(12, 2)
    moved = ((k > 0) / (k > 0).sum(1, keepdim=True) * k) @ layer.neighbours(rows) + layer.itself(rows)
    torch.testing.assert_close(found[..., :5].view(12, 5), moved)
    scores = layer.classify(moved).view(1, 4, 3)
    torch.testing.assert_close(found[..., 5], sinkhorn(scores, temperature=0.05))


@torch.no_grad()
def test_channel_conv_equals_a_loop_over_edges():
    torch.manual_seed(1)
    pair, source, _ = random_pair(5, 5, seed=2)
    first = ChannelConv(6, 4).double()
    second = ChannelConv(4, 3, first).double()
    graph, h = pair.source, source.local[0]
    a, points = graph.adjacency[0], graph.points[0]
    edges = (-(points[:, None] - points).norm(dim=-1, keepdim=True) / 256).exp()
    features = source.local
    for layer in (first, second):
        embedded, sent, wanted = layer.edges(edges), layer.neighbours(h), []
        for i in range(5):
            total = sum(a[i, j] / a[:, j].sum() * embedded[i, j] * sent[j] for j in range(5))
            wanted.append(relu(total) + relu(layer.itself(h[i])))
        h, edges = torch.stack(wanted), relu(embedded)
        features = layer(features, features, graph, graph.adjacency)
        torch.testing.assert_close(features[0], h)
    assert not any(name.startswith("before") for name, _ in second.named_parameters())


@torch.no_grad()
def test_learned_edges_and_convolutions_over_them_equal_a_loop():
    torch.manual_seed(1)
    pair, source, _ = random_pair(5, 5, seed=2)
    x, a = source.local[0], pair.source.adjacency[0]
    learn = LearnedEdges(6).double()
    theta = torch.cat([learn.start, learn.end])
    learned = learn(source.local, pair.source.adjacency)
    for i in range(5):
        weights = torch.stack([a[i, j] * relu(theta @ torch.cat([x[i], x[j]])).exp() for j in range(5)])
        torch.testing.assert_close(learned[0, i], weights / weights.sum())
    for share in (0.5, -0.75):
        layer = BalancedConv(6, 4, share).double()
        wanted = relu((1 - share) * layer.itself(x) + share * learned[0] @ layer.neighbours(x))
        torch.testing.assert_close(layer(source.local, source.local, pair.source, learned)[0], wanted)


@torch.no_grad()
def test_a_graph_network_block_equals_a_loop_over_pairs_of_edges():
    torch.manual_seed(1)
    pair, _, _ = random_pair(4, 3, seed=2)
    lists = [list_edges(graph.adjacency) for graph in (pair.source, pair.target)]
    marks = [mark_edges(edges, size, torch.float64) for edges, size in zip(lists, (4, 3))]
    block, places = GraphNetworkBlock(5).double(), Places(*marks[0], *marks[1], pair.mask)
    v, e = torch.rand(4, 3, 5, dtype=torch.float64), torch.rand(*(len(one[0]) for one in lists), 5).double()
    u = torch.rand(5, dtype=torch.float64)
    found = block(Association(v[None], e[None], u[None]), places)
    u = u + relu(block.whole(torch.cat([v.mean((0, 1)), e.mean((0, 1)), u])))
    e, sums, counts = e.clone(), torch.zeros_like(v), torch.zeros(4, 3, 1)
    for first, (i, j) in enumerate(lists[0][0].tolist()):
        for second, (x, y) in enumerate(lists[1][0].tolist()):
            heard = block.edge(e[first, second]) + block.start(v[i, x]) + block.end(v[j, y]) + block.edge_whole(u)
            e[first, second] += relu(heard)
            sums[i, x] += e[first, second]
            counts[i, x] += 1
    v = v + relu(block.node(torch.cat([v, sums / counts, u.expand_as(v)], -1)))
    for one, wanted in ((found.candidates, v), (found.edges, e), (found.whole, u)):
        torch.testing.assert_close(one[0], wanted)


@torch.no_grad()
def test_bbgm_scores_edges_by_differences_of_their_ends():
    head = build("bbgm")
    pair, source, target = random_pair(4, 5, seed=3)
    nodes = (source.join(), target.join())
    operator = head.affinity(pair, nodes, source, target)
    both = torch.cat([source.whole[0], target.whole[0]])
    weights, edge_weights = (linear(both).tanh() for linear in (head.affinity.nodes, head.affinity.edges))
    score = torch.nn.functional.softplus
    torch.testing.assert_close(operator.unary[0, 1, 2], score((nodes[0][0, 1] * weights) @ nodes[1][0, 2]) - 0.5)
    for e, (i, j) in enumerate(operator.source_edges[0].tolist()):
        for f, (x, y) in enumerate(operator.target_edges[0].tolist()):
            difference, other = nodes[0][0, i] - nodes[0][0, j], nodes[1][0, x] - nodes[1][0, y]
            torch.testing.assert_close(operator.edge[0, e, f], 0.5 * (score((difference * edge_weights) @ other) - 0.5))


@torch.no_grad()
def test_bbgm_leaves_nodes_out_unless_it_is_maximal():
    pair, source, target = random_pair(5, 5, seed=3)
    source, target = (make_features(9 * one.local, 9 * one.edge, one.whole) for one in (source, target))
    counts = []
    for maximal in (False, True):
        head = build("bbgm", maximal=maximal)
        head.affinity.nodes.bias.fill_(-9.0)  # tanh of it: what nodes share speaks against a match
        for parameter in head.affinity.edges.parameters():
            parameter.zero_()
        counts.append(float(head(pair, source, target).assignment.sum()))
    assert counts[0] < 5
    assert counts[1] == 5


@torch.no_grad()
def test_bbgm_makes_true_matches_win_by_a_margin_in_training_only():
    pair, source, target = random_pair(5, 5, seed=3)
    head = build("bbgm", margin=100.0, maximal=True)
    kept = head(pair, source, target).assignment > 0
    pair = replace(pair, truth=kept)
    assert torch.equal(head(pair, source, target).assignment > 0, kept)
    assert not head.train()(pair, source, target).assignment[kept].any()


def test_histograms_of_edges_are_windows_around_their_length_and_direction():
    points = torch.tensor([[[0.0, 0.0], [4.0, 0.0], [0.0, 8.0]]]).double()
    edges = torch.tensor([[[0, 1], [1, 0], [0, 2], [2, 0], [-1, -1]]])
    found = describe_edges(points, edges)
    assert found.shape == (1, 5, 27)
    lengths, directions = found[0].split([9, 18], -1)
    torch.testing.assert_close(found[0, :4].norm(dim=-1), torch.full((4,), 2.0).double().sqrt())
    # The mean is 6: log2(4/6) is 1.17 bins below the middle one, log2(8/6) is 0.83 bins above.
    assert lengths[:4].argmax(-1).tolist() == [3, 3, 5, 5]
    assert directions[:2].argmax(-1).tolist() == [0, 9]
    torch.testing.assert_close(directions[1], directions[0].roll(9))
    window = torch.tensor([-(k**2) / 2 for k in range(-9, 9)]).double().exp().roll(-9)
    torch.testing.assert_close(directions[0], window / window.norm())
    assert not found[0, 4].any()
    torch.testing.assert_close(describe_edges(3 * points, edges), found)


def test_the_weights_of_harg_learn_like_those_of_a_structured_svm():
    head = build("harg", strength=1e6).train()
    pair, source, target = random_pair(5, 5, seed=3)
    matching = head(pair, source, target)
    LOSSES["hamming"]()(matching, pair).backward()
    x = (matching.assignment - pair.truth.double()).detach()[0]
    assert x.any()
    used = torch.einsum("ik,ic,kc->c", x, source.join()[0], target.join()[0])
    torch.testing.assert_close(head.nodes.grad * 1e6, used)


def test_conflicts_are_products_of_matches_that_share_a_node():
    pair, source, target = random_pair(3, 4, seed=3)
    matching = build("pca")(pair, source, target)
    x = matching.assignment[0]
    cells = [(i, j) for i in range(3) for j in range(4)]
    shared = sum(x[a] * x[b] for a in cells for b in cells if a != b and (a[0] == b[0] or a[1] == b[1]))
    with_term, without = (LOSSES["permutation"](conflict=weight)(matching, pair) for weight in (0.1, 0.0))
    torch.testing.assert_close(with_term - without, 0.1 * shared / 3)
