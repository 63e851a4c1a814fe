import itertools
import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_pairs import random_pair
from torch.nn.functional import pad

from quadmatch import Graph, GraphPair, Matching, collate
from quadmatch.losses import LOSSES, false_matching, hungarian_attention
from quadmatch.matching import Stage
from quadmatch.solvers.linear.sinkhorn import sinkhorn

FACTORIES = {**LOSSES, "released": lambda **options: false_matching(reading="released", **options)}
# Its layers are compared by scores, of which none are best: they have tests of their own below.
FACTORIES["contrastive"] = partial(LOSSES["contrastive"], earlier=0.0)
every_loss = pytest.mark.parametrize("name", FACTORIES)
seeds = st.integers(0, 1000)
sizes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4)


def _pair(shape: tuple[int, int], seed: int) -> GraphPair:
    """A random pair of which about a third of the true matches are unknown."""
    pair, *_ = random_pair(*shape, seed=seed)
    unknown = torch.rand(pair.truth.shape, generator=torch.Generator().manual_seed(seed)) < 0.3
    return replace(pair, truth=pair.truth & ~unknown)


def _matching(pair: GraphPair, seed: int, earlier: int = 0) -> Matching:
    generator = torch.Generator().manual_seed(seed)
    made = [
        sinkhorn(torch.randn(pair.mask.shape, generator=generator, dtype=torch.float64), pair.mask, temperature=1.0)
        for _ in range(earlier + 1)
    ]
    stages = tuple(Stage(one, one) for one in made[1:])
    return Matching(made[0], made[0], pair.source.adjacency, pair.target.adjacency, stages)


def _perfect(pair: GraphPair) -> Matching:
    return replace(_matching(pair, 0), assignment=pair.truth.double())


def _pick_best(x: torch.Tensor, n: int, m: int) -> set[tuple[int, int]]:
    """Matches of the best permutation, by trying all."""
    orders = [list(enumerate(order)) for order in itertools.permutations(range(max(n, m)), n)]
    matches = [{(i, j) for i, j in order if j < m} for order in orders]
    return max(matches, key=lambda some: sum(float(x[i, j]) for i, j in some))


def _compute_by_loops(name: str, matching: Matching, pair: GraphPair) -> float:
    """Each formula written out over pairs and entries."""
    per_pair, possible, known = [], 0, 0
    all_wrong = all_missing = entropy = attention = offset = picking = 0.0
    for b in range(len(pair.truth)):
        n, m = int(pair.source.sizes[b]), int(pair.target.sizes[b])
        x, t, points = matching.assignment[b], pair.truth[b], pair.target.points[b] / 256
        picked = _pick_best(x, n, m)
        wrong = missing = 0.0
        for i, j in itertools.product(range(n), range(m)):
            p = float(x[i, j])
            wrong += 0.0 if t[i, j] else p
            missing += 1 - p if t[i, j] else 0.0
            here = -math.log(p) if t[i, j] else -math.log(1 - p)
            entropy += here
            picking -= math.log((p + 1e-6) / (1 + 1e-6)) if t[i, j] else 0.0
            attention += here if t[i, j] or (i, j) in picked else 0.0
        for i in range(n):
            if t[i].any():
                error = sum(float(x[i, j]) * points[j] for j in range(m)) - points[int(t[i].int().argmax())]
                offset += math.sqrt(float(error @ error) + 1e-5)
                known += 1
        k = max(min(n, m), 1)
        per_pair.append(math.exp(2 * wrong / k) + math.exp(0.1 * missing / k))
        possible += min(n, m)
        all_wrong, all_missing = all_wrong + wrong, all_missing + missing
    count = max(possible, 1)
    return {
        "false_matching": sum(per_pair) / len(per_pair),
        "released": math.exp(2 * all_missing / count) + math.exp(0.1 * all_wrong / count),
        "permutation": entropy / count,
        "hungarian_attention": attention / count,
        "offset": offset / max(known, 1),
        "hamming": (all_wrong + all_missing) / count,
        "contrastive": picking / max(known, 1),
    }[name]


@every_loss
@given(st.lists(st.tuples(st.integers(2, 4), st.integers(2, 4)), min_size=1, max_size=3), st.integers(0, 1000))
def test_equals_its_formula_in_loops(name, shapes, seed):
    pair = collate([_pair(shape, seed + k) for k, shape in enumerate(shapes)])
    matching = _matching(pair, seed)
    matching = replace(matching, assignment=0.9 * matching.assignment)  # no entry at 1: its logarithm is clamped
    loss = FACTORIES[name]()(matching, pair)
    assert float(loss) == pytest.approx(_compute_by_loops(name, matching, pair), rel=1e-9)


@every_loss
@settings(max_examples=8)
@given(sizes, seeds, st.integers(0, 3))
def test_padding_never_changes_a_loss(name, shapes, seed, extra):
    pair = collate([_pair(shape, seed + k) for k, shape in enumerate(shapes)])
    matching = _matching(pair, seed, earlier=1)
    loss = FACTORIES[name](earlier=0.5)
    (source, rows), (target, columns) = (_grow(graph, extra) for graph in (pair.source, pair.target))

    def widen(values: torch.Tensor) -> torch.Tensor:
        return pad(values, (0, columns - values.shape[2], 0, rows - values.shape[1]))

    larger = Matching(
        widen(matching.unary),
        widen(matching.assignment),
        source.adjacency,
        target.adjacency,
        tuple(Stage(widen(one.unary), widen(one.assignment)) for one in matching.earlier),
    )
    wide = GraphPair(source, target, widen(pair.truth))
    torch.testing.assert_close(loss(larger, wide), loss(matching, pair), rtol=1e-12, atol=1e-12)


def _grow(graph: Graph, extra: int) -> tuple[Graph, int]:
    """More padding, with points that are not zero."""
    grown = Graph(
        pad(graph.points, (0, 0, 0, extra), value=99.0),
        pad(graph.mask, (0, extra)),
        pad(graph.adjacency, (0, extra, 0, extra)),
    )
    return grown, grown.mask.shape[1]


@every_loss
@settings(max_examples=8)
@given(sizes, seeds)
def test_finite_and_least_at_the_truth(name, shapes, seed):
    pair = collate([_pair(shape, seed + k) for k, shape in enumerate(shapes)])
    loss = FACTORIES[name]()
    best = loss(_perfect(pair), pair)
    floor = {"false_matching": 2.0, "released": 2.0, "offset": math.sqrt(1e-5) if pair.truth.any() else 0.0}
    assert float(best) == pytest.approx(floor.get(name, 0.0), abs=1e-9)
    other = loss(_matching(pair, seed), pair)
    assert other.isfinite()
    assert float(other) >= float(best) - 1e-12


@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_worst_answer_has_a_finite_loss_and_gradient(name, dtype):
    pair = collate([random_pair(20, 20, seed)[0] for seed in range(8)]).to(dtype)
    wrong = pair.truth.roll(1, 2).to(dtype).requires_grad_()
    loss = FACTORIES[name]()(replace(_matching(pair, 0), assignment=wrong).to(dtype), pair)
    loss.backward()
    assert loss.isfinite()
    assert wrong.grad.isfinite().all()
    if name in ("false_matching", "released"):
        assert loss.item() == pytest.approx(math.exp(2) + math.exp(0.1), rel=1e-5)


@every_loss
@pytest.mark.parametrize("shape", [(3, 3), (2, 4)])
def test_gradients(name, shape):
    pair = collate([_pair(shape, 1), _pair((1, 2), 2)])
    matching = _matching(pair, 3, earlier=2)
    loss = FACTORIES[name](earlier=0.3)

    def compute(assignment: torch.Tensor, *earlier: torch.Tensor) -> torch.Tensor:
        stages = tuple(Stage(matching.unary, one) for one in earlier)
        return loss(replace(matching, assignment=assignment, earlier=stages), pair)

    every = (matching.assignment, *(stage.assignment for stage in matching.earlier))
    inputs = [(0.9 * values + 0.02 * pair.mask).requires_grad_() for values in every]
    assert torch.autograd.gradcheck(compute, inputs)


@pytest.mark.parametrize("name", [name for name in FACTORIES if name != "contrastive"])
def test_earlier_layers_count_as_much_as_asked(name):
    pair = collate([_pair((4, 5), 1)])
    matching = _matching(pair, 3, earlier=2)
    alone = [
        FACTORIES[name]()(replace(matching, assignment=x), pair)
        for x in (matching.assignment, *(stage.assignment for stage in matching.earlier))
    ]
    together = FACTORIES[name](earlier=0.6)(matching, pair)
    torch.testing.assert_close(together, alone[0] + 0.2 * (alone[0] + alone[1] + alone[2]))
    torch.testing.assert_close(FACTORIES[name]()(matching, pair), alone[0])


def test_a_constraint_changes_nothing_but_the_last_assignment_that_is_supervised():
    """Trained with the constraint or without, as many assignments are compared with the truth."""
    pair = collate([_pair((4, 5), 1)])
    plain = _matching(pair, 3, earlier=1)
    constrained = replace(plain, assignment=plain.assignment.flip(1), unconstrained=plain.assignment)
    assert len(plain.stages) == len(constrained.stages) == 2
    loss, alone = LOSSES["false_matching"](earlier=0.5), LOSSES["false_matching"]()
    torch.testing.assert_close(
        loss(constrained, pair) - alone(constrained, pair), loss(plain, pair) - alone(plain, pair)
    )


@given(st.integers(1, 6), st.integers(0, 100))
def test_readings_agree_on_squares_but_for_the_weights(size, seed):
    """Every keypoint with a partner and rows summing to one: false positives equal false negatives."""
    pair, *_ = random_pair(size, size, seed=seed)
    matching = _matching(pair, seed)
    rows = matching.assignment / matching.assignment.sum(-1, keepdim=True)
    matching = replace(matching, assignment=rows)
    paper, released = false_matching(2.0, 0.1), false_matching(0.1, 2.0, "released")
    torch.testing.assert_close(paper(matching, pair), released(matching, pair))


def test_paper_reading_is_the_mean_of_its_pairs():
    pairs = [_pair((3, 4), 1), _pair((5, 2), 2)]
    losses = [false_matching()(_matching(pair, 7), pair) for pair in pairs]
    batch = collate(pairs)
    joined = torch.zeros(batch.mask.shape, dtype=torch.float64)
    for b, pair in enumerate(pairs):
        n, m = pair.truth.shape[1:]
        joined[b, :n, :m] = _matching(pair, 7).assignment[0]
    together = false_matching()(replace(_matching(batch, 7), assignment=joined), batch)
    torch.testing.assert_close(together, torch.stack(losses).mean())


def test_hungarian_attention_ignores_what_nobody_picks():
    pair, *_ = random_pair(3, 3)
    truth = torch.eye(3, dtype=torch.bool)[None]
    pair = replace(pair, truth=truth)
    assignment = torch.tensor([[[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]]]).double().requires_grad_()
    hungarian_attention()(replace(_matching(pair, 0), assignment=assignment), pair).backward()
    assert torch.equal(assignment.grad != 0, truth)


def test_contrastive_by_hand():
    pair = collate([_pair((3, 4), 1), _pair((4, 2), 2)])
    matching = _matching(pair, 3, earlier=1)
    total, layers = 0.0, 0.0
    for b, i, j in pair.truth.nonzero().tolist():
        total -= math.log((matching.assignment[b, i, j] + 1e-6) / (1 + 1e-6))
        for stage in matching.stages:
            scores = stage.unary[b, : pair.source.sizes[b], : pair.target.sizes[b]]
            layers -= 0.25 * (scores.log_softmax(1)[i, j] + scores.log_softmax(0)[i, j]).item()
    count = int(pair.truth.sum())
    assert LOSSES["contrastive"](earlier=0.0)(matching, pair).item() == pytest.approx(total / count)
    assert LOSSES["contrastive"](earlier=0.5)(matching, pair).item() == pytest.approx((total + 0.5 * layers) / count)
    assert LOSSES["contrastive"]()(matching, pair).item() == pytest.approx((total + layers) / count)


def test_contrastive_asks_nodes_whether_they_have_a_partner():
    pair = collate([_pair((3, 4), 1), _pair((4, 2), 2)])
    sides = (pair.source, pair.truth.any(2)), (pair.target, pair.truth.any(1))
    logits = tuple(torch.where(has, 2.0, -1.0).double() for _, has in sides)
    values = [math.log1p(math.exp(-2.0 if has else -1.0)) for side, truth in sides for has in truth[side.mask].tolist()]
    matching = replace(_matching(pair, 3), matchable=logits)
    more = LOSSES["contrastive"](matchability=0.7)(matching, pair) - LOSSES["contrastive"](matchability=0.0)(
        matching, pair
    )
    assert more.item() == pytest.approx(0.7 * sum(values) / len(values))


def test_contrastive_tells_nodes_from_those_of_all_pairs():
    pair = collate([_pair((3, 4), 1), _pair((4, 2), 2)])
    generator = torch.Generator().manual_seed(5)
    alone = tuple(
        torch.randn(2, side.mask.shape[1], 6, generator=generator).double() for side in (pair.source, pair.target)
    )
    names = (torch.tensor([[7, 8, -1, 3], [7, 9, -2, 8]]), torch.tensor([[8, 7, -1, -2], [9, 7, 5, 5]]))
    known = replace(pair, names=names)
    matching = replace(_matching(pair, 3), alone=alone)
    sides = [
        [(int(name[b, i]), place[b, i]) for b, i in graph.mask.nonzero().tolist()]
        for name, place, graph in zip(names, alone, (pair.source, pair.target))
    ]
    expected = 0.0
    for ours, theirs in (sides, sides[::-1]):
        values = []
        for name, place in ours:
            log_p = torch.stack([place @ other for _, other in theirs]).log_softmax(0).tolist()
            namesakes = [value for value, (other, _) in zip(log_p, theirs) if other == name >= 0]
            values += [-sum(namesakes) / len(namesakes)] if namesakes else []
        expected += 0.5 * sum(values) / len(values)
    losses = [LOSSES["contrastive"](names=weight)(matching, known).item() for weight in (0.0, 0.3)]
    assert losses[1] - losses[0] == pytest.approx(0.3 * expected)
    assert LOSSES["contrastive"](names=0.3)(matching, pair).item() == losses[0]  # Nothing is known of names.
    nameless = replace(pair, names=tuple(torch.full_like(one, -2) for one in names))
    assert LOSSES["contrastive"](names=0.3)(matching, nameless).item() == losses[0]
