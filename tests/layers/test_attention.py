"""Attention against its formula, written out node by node."""

from dataclasses import replace

import pytest
import torch
from random_pairs import random_graph, random_pair

from quadmatch.graph import Graph, GraphPair, PairBatch
from quadmatch.layers.attention import (
    Attention,
    AttentionLayer,
    GeometricBias,
    find_room,
    hide_other,
    list_relations,
    relate_nodes,
)
from quadmatch.layers.network import pick_mutually
from quadmatch.layers.nodes import pack_graph
from quadmatch.layers.spline_conv import plan_messages
from quadmatch.matcher import Matcher
from quadmatch.matching import Matching
from quadmatch.methods import METHODS


def make_graph(*sizes: int) -> Graph:
    generator = torch.Generator().manual_seed(0)
    return Graph.cat([random_graph(size, generator) for size in sizes])


def test_attention_is_its_formula_and_does_not_see_padding() -> None:
    torch.manual_seed(0)
    attention, graph = Attention(8, 2).double(), make_graph(3, 5)
    packing, bias = pack_graph(graph), GeometricBias(2).double()(graph)
    nodes = torch.randn(2, 5, 8).double()
    for across in (False, True):
        found = attention(packing.pack(nodes), graph, hide_other(graph, 2) if across else bias, across=across)
        for b, own in enumerate((3, 5)):
            other, count = (1 - b, 8 - own) if across else (b, own)
            query, memory = attention.query(nodes[b, :own]), attention.memory(nodes[other, :count])
            parts = []
            for head in range(2):
                key, value = memory[:, 4 * head : 4 * head + 4], memory[:, 8 + 4 * head : 12 + 4 * head]
                scores = query[:, 4 * head : 4 * head + 4] @ key.T / 2
                scores = scores if across else scores + bias.view(2, 2, 16, 16)[head, b, :count, :own].T
                parts.append(scores.softmax(-1) @ value)
            written = attention.output(torch.cat(parts, -1))
            torch.testing.assert_close(packing.spread(found)[b, :own], written)


def test_a_graph_without_nodes_is_attended_to_by_nothing() -> None:
    attention, graph = Attention(8, 2).double(), make_graph(3, 0)
    found = attention(torch.randn(3, 8).double(), graph, hide_other(graph, 2), across=True)
    torch.testing.assert_close(found, attention.output.bias.expand(3, 8))


def test_relations_are_offsets_distances_and_edges() -> None:
    graph = make_graph(4)
    related = relate_nodes(graph)[0]
    offset = (graph.points[0, 1] - graph.points[0, 2]) / 256
    torch.testing.assert_close(related[1, 2, :2], offset)
    torch.testing.assert_close(related[1, 2, 2], (offset.square().sum() + 1e-6).sqrt())
    assert torch.equal(related[..., 6] > 0, graph.adjacency[0] != 0)
    moved = replace(graph, points=3 * graph.points + 40)
    torch.testing.assert_close(relate_nodes(moved)[0][..., 3:6], related[..., 3:6])


def test_a_bias_hides_padding() -> None:
    graph = make_graph(5, 2)
    bias = GeometricBias(3).double()(graph)
    assert bias.shape == (6, 16, 16)
    by_head = bias.view(3, 2, 16, 16)
    assert not by_head[:, 1, :, :2].softmax(-2)[:, 2:].any()
    assert (by_head[:, 0, :5, :5].abs() < 10).all()
    hidden = hide_other(graph, 3).view(3, 2, 16) < 0
    assert hidden.logical_not().sum(-1).tolist() == 3 * [[2, 5]]


def test_attention_has_room_for_whole_vectors() -> None:
    assert [find_room(make_graph(size)) for size in (0, 1, 16, 17)] == [16, 16, 16, 32]


def test_what_depends_on_a_graph_alone_is_made_once() -> None:
    graph = make_graph(4, 3)
    assert graph.once(list_relations) is graph.once(list_relations)
    assert graph.once(plan_messages, 5, 128.0) is graph.once(plan_messages, 5, 128.0)
    assert graph.once(plan_messages, 5, 128.0) is not graph.once(plan_messages, 5, 256.0)
    moved = replace(graph, points=graph.points + 1)
    assert moved.once(list_relations) is not graph.once(list_relations)


def test_a_layer_looks_at_the_other_graph_of_its_own_pair_only() -> None:
    torch.manual_seed(0)
    layer, graph = AttentionLayer(8, heads=2).double(), make_graph(4, 3, 4, 4)
    inputs = torch.randn(4, 4, 8).double() * graph.mask[..., None]
    before = layer(inputs, inputs, graph, graph.adjacency)
    changed = inputs.clone()
    changed[2] += 1.0  # the target of the first pair
    after = layer(changed, changed, graph, graph.adjacency)
    assert [not torch.equal(one, other) for one, other in zip(before, after)] == [True, False, True, False]
    with pytest.raises(ValueError, match="multiple of heads"):
        AttentionLayer(8, heads=3)


def test_only_who_may_learn_hears_of_the_layers_before_the_last() -> None:
    pair, source, target = random_pair(5, 4)
    head = METHODS["attention"](channels=12, width=8, heads=2, layers=2).double().eval()
    whole = head(pair, source, target)
    with torch.inference_mode():
        last = head(pair, source, target)
    assert (len(whole.stages), len(last.stages)) == (4, 1)
    torch.testing.assert_close(last.assignment, whole.assignment)


def test_in_training_nodes_say_what_they_are_before_they_know_of_the_other_graph() -> None:
    pair, source, target = random_pair(5, 4)
    torch.manual_seed(0)
    head = METHODS["attention"](channels=12, width=8, heads=2, layers=2, convolutions=2).double()
    whole = head(pair, source, target)
    ours, theirs = whole.alone
    torch.testing.assert_close(ours @ theirs.mT, whole.earlier[1].unary)
    other = replace(target, maps={name: one.flip(1) for name, one in target.maps.items()})
    assert torch.equal(head(pair, source, other).alone[0], ours)
    assert not torch.equal(head(pair, source, other).alone[1], theirs)
    assert head.eval()(pair, source, target).alone is None
    assert (
        METHODS["attention"](channels=12, width=8, heads=2, convolutions=0).double()(pair, source, target).alone is None
    )


def test_nodes_pick_each_other_where_both_softmaxes_are_large() -> None:
    scores = torch.tensor([[[4.0, 0.0, 9.0], [0.0, 3.0, 9.0]]])
    mask = torch.tensor([[[True, True, False], [True, True, False]]])
    rows, columns = scores[0, :, :2].softmax(1), scores[0, :, :2].softmax(0)
    found = pick_mutually(scores, mask)
    torch.testing.assert_close(found[0, :, :2], rows * columns)
    assert not found[0, :, 2].any()


def test_a_head_that_knows_of_partners_leaves_a_node_alone_that_nobody_picks() -> None:
    torch.manual_seed(0)
    unary = torch.tensor([[[6.0, 0.0], [6.0, 1.0]]])
    pair = GraphPair(make_graph(2), make_graph(2), torch.zeros(1, 2, 2, dtype=torch.bool))
    edges = torch.zeros(1, 2, 2)
    matching = Matching(unary, torch.full((1, 2, 2), 0.5), edges, edges, mutual=pick_mutually(unary, pair.mask))
    whole = PairBatch(pair, *(torch.zeros(1, dtype=torch.long),) * 2, *(torch.arange(2)[None],) * 2)
    matcher = Matcher(torch.nn.Identity(), torch.nn.Identity(), threshold=0.4)
    assert matcher.decode(matching, whole).assignment.sum() == 2
    assert matcher.decode(matching, whole, partial=True).assignment[0].tolist() == [[1, 0], [0, 0]]


def test_the_head_runs_under_autocast() -> None:
    pair, source, target = random_pair(5, 4)
    channels = source.join().shape[-1]
    head = METHODS["attention"](channels=channels, width=16, layers=1, heads=2)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assignment = head(pair.to(torch.float32), source.to(torch.float32), target.to(torch.float32)).assignment
    torch.testing.assert_close(assignment.float().sum(1), torch.ones(1, 4), atol=0.05, rtol=0)


SMALL = {"channels": 12, "width": 16, "layers": 1, "convolutions": 1, "heads": 2}


@pytest.mark.parametrize("switch", ["feature_dropout", "erase", "dropout"])
def test_the_head_leaves_out_in_training_what_its_switches_say(switch: str) -> None:
    pair, source, target = random_pair(7, 6, seed=0, dtype=torch.float32)

    def score_twice(value: float, training: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        head = METHODS["attention"](**SMALL, **{switch: value}).train(training)
        return [head(pair, source, target).unary for _ in range(2)]

    for value, training, alike in ((0.5, True, False), (0.5, False, True), (0.0, True, True)):
        first, second = score_twice(value, training)
        assert torch.equal(first, second) == alike


def test_a_node_that_is_erased_is_known_by_its_place_alone() -> None:
    pair, source, target = random_pair(7, 6, seed=0, dtype=torch.float32)
    other = replace(source, maps={name: one.flip(1) for name, one in source.maps.items()})
    for erase, alike in ((1.0, True), (0.0, False)):
        torch.manual_seed(0)
        head = METHODS["attention"](**SMALL, erase=erase).train()
        head.matchability = None  # It reads what the image says of a node, erased or not.
        assert torch.equal(*(head(pair, one, target).unary for one in (source, other))) == alike
