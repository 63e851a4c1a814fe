"""The default matcher: a trained head and the untrained read-outs."""

from dataclasses import replace

import torch
from random_pairs import make_features, random_pair

import quadmatch.methods.bending as bending
from quadmatch import Features, Graph, GraphPair
from quadmatch.decode import decode, split_results
from quadmatch.delaunay import delaunay
from quadmatch.layers.quadratic_constraint import QuadraticConstraint
from quadmatch.matching import Matching
from quadmatch.methods import METHODS
from quadmatch.methods.bending import CERTAIN, NODES, bend, choose_try
from quadmatch.methods.consensus import SHARE, Consensus, discount
from quadmatch.methods.dot_product import DotProduct


def widen(first: Features, second: Features) -> Features:
    """What `Apart` reads, beside what the untrained half does."""
    return Features({f"own {name}": rows for name, rows in first.maps.items()} | second.maps, first.whole)


class Apart(torch.nn.Module):
    """A head that reads features of its own."""

    def __init__(self, head: torch.nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        own = [make_features(one.maps["own relu4_2"], one.maps["own relu5_1"], one.whole) for one in (source, target)]
        return self.head(pair, *own)


def make_sides(seed: int, sharp: float) -> tuple[Features, Features, torch.Tensor]:
    """Read-outs that agree at the true matches, the more clearly the sharper they are."""
    pair, source, target = random_pair(7, 7, seed=seed)
    truth = pair.truth[0].double()
    local = torch.nn.functional.normalize((1 - sharp) * target.local + sharp * (truth.mT @ source.local), dim=-1)
    edge = torch.nn.functional.normalize((1 - sharp) * target.edge + sharp * (truth.mT @ source.edge), dim=-1)
    return source, make_features(local, edge, target.whole), pair.truth


def test_whoever_is_sure_decides() -> None:
    for seed in range(5):
        pair, *_ = random_pair(7, 7, seed=seed)
        sure, sure_target, truth = make_sides(seed, 0.9)
        flat, flat_target = (
            make_features(*(torch.ones_like(part) / part.shape[-1] ** 0.5 for part in one))
            for one in ((sure.local, sure.edge, sure.whole), (sure_target.local, sure_target.edge, sure_target.whole))
        )
        for source, target in (
            (widen(sure, flat), widen(sure_target, flat_target)),
            (widen(flat, sure), widen(flat_target, sure_target)),
        ):
            found = Consensus(Apart(DotProduct(temperature=0.03)))(pair, source, target)
            assert torch.equal(found.assignment.argmax(-1)[0], truth.double().argmax(-1)[0])
            assert (found.assignment.sum(-1) <= 1 + 1e-4).all()


def test_a_head_is_believed_less_about_nodes_that_it_takes_for_alone() -> None:
    sure = torch.eye(4, dtype=torch.float64)[None]
    structure = torch.zeros(1, 4, 4, dtype=torch.float64)
    logits = torch.tensor([[9.0, -2.0, 0.0, 9.0]], dtype=torch.float64), torch.zeros(1, 4, dtype=torch.float64)
    said = Matching(sure, sure, structure, structure, matchable=logits)
    found = discount(said).assignment
    expected = (logits[0].sigmoid() * logits[1].sigmoid()).sqrt()
    assert torch.allclose(found[0].diagonal(), expected[0])
    assert not (found - sure * found).any()
    silent = replace(said, matchable=None)
    assert discount(silent) is silent


def test_halves_go_to_their_own() -> None:
    pair, source, target = random_pair(5, 6, seed=3)
    _, other, other_target = random_pair(5, 6, seed=4)
    head = DotProduct()
    found = Consensus(Apart(head), temperature=0.1)(pair, widen(source, other), widen(target, other_target))
    expected = torch.lerp(head(pair, source, target).assignment, head(pair, other, other_target).assignment, SHARE)
    assert torch.allclose(found.assignment, expected)
    assert torch.equal(found.structure_source, pair.source.adjacency)


def test_release_takes_the_heads_constraint_out() -> None:
    pair, source, target = random_pair(6, 6, seed=1, channels=16, dtype=torch.float32)
    head = METHODS["dgm2"](width=8, channels=16).eval()
    both = Consensus(QuadraticConstraint(head)).eval()
    with torch.no_grad():
        found = both(pair, source, target)
        free = head(pair, source, target).assignment
        plain = both.plain(pair, source, target).assignment
    assert torch.allclose(found.release().assignment, torch.lerp(free, plain, SHARE))
    assert not torch.allclose(found.assignment, torch.lerp(free, plain, SHARE))


def make_folded(count: int) -> tuple[GraphPair, Matching, torch.Tensor]:
    """A plane seen before and after a turn, with an assignment that is half wrong, and one that is right."""
    rng = torch.Generator().manual_seed(0)
    points = 20 + 216 * torch.rand(count, 2, generator=rng)
    x, y = points.T
    others = torch.stack([torch.where(x < 128, 0.5 * x, 64 + 1.5 * (x - 128)), 0.9 * y + 5], 1)
    graphs = [Graph(one[None], torch.ones(1, count, dtype=torch.bool), delaunay(one)[None]) for one in (points, others)]
    wrong = torch.eye(count)[torch.randperm(count, generator=rng)][None]
    unsure = 0.5 * wrong + 0.3 * torch.eye(count)
    matching = Matching(wrong, wrong, graphs[0].adjacency, graphs[1].adjacency, unconstrained=unsure)
    return GraphPair(*graphs, torch.eye(count, dtype=torch.bool)[None]), matching, 0.8 * torch.eye(count)[None]


def test_local_maps_decide_where_neighbours_move_together() -> None:
    pair, found, start = make_folded(30)

    bent = bend(pair, found, (start,), weight=0.05)
    assert torch.equal(bent.settle(partial=False).assignment.argmax(-1)[0], torch.arange(30))
    assert torch.equal(bent.release().assignment, found.release().assignment)  # Without the constraint, as before.
    assert torch.equal(bent.settle(partial=True).assignment, found.assignment)  # Partial matches are as before.
    right = replace(found, assignment=torch.eye(30)[None])
    forced = bend(pair, right, (found.assignment,), weight=0.05).settle(partial=False).assignment
    assert torch.equal(forced.argmax(-1)[0], torch.arange(30))


def test_pairs_of_a_batch_are_bent_each_by_itself() -> None:
    pair, found, start = make_folded(30)
    both = pair.map(lambda one: torch.cat([one, one]))
    strange = both.target.points.clone()
    strange[0] = strange[0].flip(0)
    both = replace(both, target=replace(both.target, points=strange))
    many = found.map(lambda one: torch.cat([one, one]))
    alone = bend(pair, found, (start,), weight=0.05).settle(partial=False).assignment
    beside = bend(both, many, (torch.cat([found.assignment, start]),), weight=0.05).settle(partial=False).assignment
    assert torch.equal(beside[0], found.assignment[0])
    assert torch.allclose(beside[1], alone[0])
    assert not torch.equal(alone, found.assignment)


def test_of_tries_that_differ_by_rounding_the_first_is_taken_and_none_that_is_not_certain() -> None:
    gain = torch.tensor([[3.0, 2.5, 4.0, 1.0], [3.0 + 1e-12, 2.6, 3.0, 2.4], [0.2, 2.6, 3.0, 2.0]], dtype=torch.float64)
    assert choose_try(gain).tolist() == [0, 1, 0, 0]
    assert CERTAIN == 2.5


def test_local_maps_say_nothing_of_few_nodes_of_very_many_and_of_chance(monkeypatch) -> None:
    pair, found, start = make_folded(NODES - 1)
    assert bend(pair, found, (start,), weight=0.05) is found
    pair, found, start = make_folded(30)
    strange = replace(pair, target=replace(pair.target, points=pair.target.points.flip(1)))
    bent = bend(strange, found, (found.assignment,), weight=0.05)
    assert torch.equal(bent.settle(partial=False).assignment, found.assignment)
    monkeypatch.setattr(bending, "LARGE", 30 * 30 - 1)
    assert bend(pair, found, (start,), weight=0.05) is found


class Matchable(torch.nn.Module):
    """The untrained comparison, of which every node is as sure of a partner as it is told."""

    def __init__(self, sure: float) -> None:
        super().__init__()
        self.inner, self.sure = DotProduct(temperature=0.01), sure

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        found = self.inner(pair, source, target)
        logits = torch.logit(torch.tensor(self.sure, dtype=source.local.dtype))
        return replace(found, matchable=(logits.expand(found.unary.shape[:2]), logits.expand(found.unary.shape[::2])))


def test_pictures_have_something_in_common_if_the_head_says_so_or_they_look_alike() -> None:
    def match(sure: float, likeness: float) -> float:
        pair, source, _ = random_pair(7, 7, seed=0)
        order = torch.eye(7, dtype=source.local.dtype)[None]
        scale = (likeness / 2) ** 0.5
        alike = make_features(scale * order, scale * order, source.whole)
        found = Consensus(Matchable(sure), temperature=0.01)(pair, alike, alike)
        assert found.matchable is None  # Nodes are not gated: the untrained half knows things that no head has learned.
        return float(split_results(pair, found, decode(found, pair.mask))[0].matchable)

    assert match(0.01, 0.4) < 0.1
    assert match(0.99, 0.4) > 0.9
    assert match(0.01, 0.9) > 0.9
    pair, source, target = random_pair(7, 7, seed=0)
    assert Consensus(DotProduct())(pair, source, target).common is None
