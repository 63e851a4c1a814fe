"""What never changes, whatever the method: every head of the registry, and the constraint around another."""

import sys
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_pairs import make_features, pad_with_junk, random_pair, relabel_features, relabel_graph

from quadmatch import Features, Graph, GraphPair, Matching, collate
from quadmatch.decode import decode
from quadmatch.layers.affinity import BilinearAffinity
from quadmatch.layers.quadratic_constraint import QuadraticConstraint
from quadmatch.losses import LOSSES
from quadmatch.methods import METHODS
from quadmatch.methods.consensus import Consensus
from quadmatch.solvers.linear.sinkhorn import sinkhorn

CHANNELS = 12


class PlainHead(torch.nn.Module):
    """Bilinear affinity of the raw features: a head that knows nothing of the constraint."""

    def __init__(self) -> None:
        super().__init__()
        self.affinity = BilinearAffinity(CHANNELS)

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        a, b = (torch.cat([features.local, features.edge], -1) for features in (source, target))
        scores = self.affinity(a, b)
        assignment = sinkhorn(scores, pair.mask, temperature=0.05)
        return Matching(scores, assignment, pair.source.adjacency, pair.target.adjacency)


HEADS = {name: partial(method, channels=CHANNELS, **method.small) for name, method in METHODS.items()}
HEADS |= {f"qc-{name}": partial(lambda build: QuadraticConstraint(build()), HEADS[name]) for name in METHODS}
HEADS["dgm1 graph"] = partial(HEADS["dgm1"], frame="both", frequencies=2)
HEADS["dgm2 merge"] = partial(HEADS["dgm2"], layers=3, cross_graph=True, merge=True)
HEADS["bbgm maximal"] = partial(HEADS["bbgm"], maximal=True)
HEADS["gmn triangulated"] = partial(HEADS["gmn"], complete=False)
HEADS["qc-dgm1_released as released"] = lambda: QuadraticConstraint(
    HEADS["dgm1_released"](), unary="scores", output="residual", direction="shifted", inner=3, divide=True
)
HEADS["constraint"] = lambda: QuadraticConstraint(PlainHead())
HEADS["constraint residual"] = lambda: QuadraticConstraint(
    PlainHead(), output="residual", unary="scores", direction="shifted"
)
HEADS["constraint logits"] = lambda: QuadraticConstraint(PlainHead(), unary="logits", temperature=0.9)


HEADS["consensus"] = lambda: Consensus(HEADS["qc-dgm1"]())
every_head = pytest.mark.parametrize("name", HEADS)


def find_method(name: str):
    """The method of a head; None for what is built by hand here."""
    return METHODS.get(name.removeprefix("qc-").split()[0])


def has_exact_gradient(name: str) -> bool:
    """Whether the gradient of this head is that of its output; what is built by hand here has one."""
    method = find_method(name)
    return method is None or method.exact_gradient


def build_loss(name: str, usual: str = "false_matching"):
    """A loss that looks at all that this head says."""
    method = find_method(name)
    return LOSSES["contrastive" if method and method.loss == "contrastive" else usual]()


sizes = st.integers(0, 6)
shapes_of_pairs = st.lists(st.tuples(sizes, sizes), min_size=1, max_size=3)


def _build(name: str, dtype: torch.dtype = torch.float64, training: bool = False) -> torch.nn.Module:
    torch.manual_seed(0)
    return HEADS[name]().to(dtype).train(training)


def _batch(shapes: list[tuple[int, int]], seed: int, dtype: torch.dtype = torch.float64):
    made = [random_pair(*shape, seed=seed + k, dtype=dtype) for k, shape in enumerate(shapes)]
    pairs, sources, targets = zip(*made)
    return (collate(pairs), Features.cat(sources), Features.cat(targets)), made


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.allclose(a, b, rtol=0, atol=1e-5 if a.dtype == torch.float32 else 1e-10)


@every_head
@settings(max_examples=3)
@given(shapes_of_pairs, st.integers(0, 99), st.booleans())
def test_padding_and_batch_mates_change_nothing(name, shapes, seed, training):
    for dtype in (torch.float32, torch.float64):
        head = _build(name, dtype, training)
        batch, made = _batch(shapes, seed, dtype)
        together = head(*batch)
        joint = decode(together, batch[0].mask)
        for b, (pair, source, target) in enumerate(made):
            n, m = pair.truth.shape[1:]
            alone = head(pair, source, target)
            assert _close(alone.unary[0], together.unary[b, :n, :m])
            # Low temperatures make a hundredth of a rounding of float32 in the scores, and nothing of one of float64.
            rounding = 2e-2 if dtype == torch.float32 else 1e-10
            assert torch.allclose(alone.assignment[0], together.assignment[b, :n, :m], rtol=0, atol=rounding)
            solution = decode(alone, pair.mask)
            assert abs(float(solution.objective[0] - joint.objective[b])) < (0.1 if dtype == torch.float32 else 1e-4)


@every_head
def test_junk_in_the_padding_changes_nothing(name):
    head = _build(name)
    pair, source, target = random_pair(4, 3, seed=5)
    wide = collate([pair, random_pair(6, 7)[0]])
    graphs = []
    for graph in (wide.source, wide.target):
        junk = ~graph.mask[:1, :, None]
        graphs.append(Graph(graph.points[:1] + junk * 33.0, graph.mask[:1], graph.adjacency[:1]))
    dirty = GraphPair(*graphs, wide.truth[:1])
    matching = head(dirty, pad_with_junk(source, 6, 0.5), pad_with_junk(target, 7, 0.5))
    assert _close(matching.assignment[:, :4, :3], head(pair, source, target).assignment)


@every_head
@settings(max_examples=3)
@given(sizes, sizes, st.integers(0, 99))
def test_relabelling_nodes_relabels_the_match(name, n, m, seed):
    generator = torch.Generator().manual_seed(seed)
    rows, columns = torch.randperm(n, generator=generator), torch.randperm(m, generator=generator)
    for dtype in (torch.float32, torch.float64):
        head = _build(name, dtype)
        pair, source, target = random_pair(n, m, seed=seed, dtype=dtype)
        moved = GraphPair(
            relabel_graph(pair.source, rows), relabel_graph(pair.target, columns), pair.truth[:, rows][:, :, columns]
        )
        first = head(pair, source, target)
        second = head(moved, relabel_features(source, rows), relabel_features(target, columns))
        assert _close(first.assignment[:, rows][:, :, columns], second.assignment)
        objectives = [decode(x, y.mask).objective for x, y in ((first, pair), (second, moved))]
        assert torch.allclose(*objectives, atol=1e-4)


@every_head
@settings(max_examples=4)
@given(shapes_of_pairs, st.integers(0, 99), st.booleans(), st.sampled_from([1.0, 30.0, 0.0]))
def test_assignments_are_finite_and_within_bounds(name, shapes, seed, training, scale):
    """Also where features are all zero or far too large."""
    head = _build(name, torch.float32, training)
    (pair, source, target), _ = _batch(shapes, seed, torch.float32)
    source = make_features(scale * source.local, scale * source.edge, source.whole)
    matching = head(pair, source, target)
    for assignment in (matching.assignment, *(stage.assignment for stage in matching.stages)):
        assert assignment.isfinite().all()
        assert (assignment >= 0).all()
        assert not assignment[~pair.mask].any()
        for dim in (1, 2):
            assert (assignment.sum(dim) <= 1 + 1e-4).all()
    for structure in (matching.unary, matching.structure_source, matching.structure_target):
        assert structure.isfinite().all()


@every_head
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (1, 1), (1, 4), (2, 2), (3, 2)])
def test_the_smallest_graphs_have_an_answer_and_gradients(name, shape):
    head = _build(name, training=True)
    pair, source, target = random_pair(*shape)
    matching = head(pair, source, target)
    build_loss(name)(matching, pair).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in head.parameters())
    expected = min(shape)
    assert float(decode(matching, pair.mask).assignment.sum()) == expected


@every_head
def test_duplicate_and_collinear_points_have_an_answer(name):
    head = _build(name, training=True)
    pair, source, target = random_pair(5, 4)
    line = torch.stack([torch.arange(5.0), torch.zeros(5)], -1)[None].double()
    pair = replace(
        pair,
        source=replace(pair.source, points=line),
        target=replace(pair.target, points=torch.zeros_like(pair.target.points)),
    )
    matching = head(pair, source, target)
    build_loss(name, "permutation")(matching, pair).backward()
    assert matching.assignment.isfinite().all()
    assert all(p.grad.isfinite().all() for p in head.parameters())


@every_head
def test_gradient_reaches_every_parameter_and_both_features(name):
    head = _build(name, training=True)
    (pair, source, target), _ = _batch([(5, 5), (6, 4)], 3)
    inputs = [values.requires_grad_() for part in (source, target) for values in (part.local, part.edge)]
    build_loss(name)(head(pair, source, target), pair).backward()
    silent = [key for key, p in head.named_parameters() if p.grad is None or not p.grad.any()]
    assert not silent
    assert all(values.grad.isfinite().all() and values.grad.any() for values in inputs)


@pytest.mark.parametrize("name", [name for name in HEADS if has_exact_gradient(name)])
def test_gradients_are_right(name):
    head = _build(name, training=True)
    pair, source, target = random_pair(3, 4, seed=2)

    def compute(local: torch.Tensor, edge: torch.Tensor) -> torch.Tensor:
        return head(pair, make_features(local, edge, source.whole), target).assignment

    inputs = (source.local.requires_grad_(), source.edge.requires_grad_())
    assert torch.autograd.gradcheck(compute, inputs, fast_mode=True)


@every_head
def test_same_seed_same_bits(name):
    batch, _ = _batch([(5, 4), (3, 6)], 1, torch.float32)
    states = []
    for _ in range(2):
        head = _build(name, torch.float32, training=True)
        build_loss(name)(head(*batch), batch[0]).backward()
        states.append([*(p.detach() for p in head.parameters()), *(p.grad for p in head.parameters())])
    assert all(torch.equal(a, b) for a, b in zip(*states))


@every_head
def test_truth_never_changes_the_output(name):
    head = _build(name)
    (pair, source, target), _ = _batch([(5, 4), (3, 6)], 1)
    blind = head(replace(pair, truth=torch.zeros_like(pair.truth)), source, target)
    assert torch.equal(head(pair, source, target).assignment, blind.assignment)


def _count_calls(head: torch.nn.Module, shapes: list[tuple[int, int]]) -> int:
    """Calls from Python, into Python and into C, of a training step."""
    (pair, source, target), _ = _batch(shapes, 0, torch.float32)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    head(pair, source, target)
    sys.setprofile(count)
    try:
        LOSSES["false_matching"]()(head(pair, source, target), pair).backward()
    finally:
        sys.setprofile(None)
    return calls


@every_head
def test_a_step_makes_the_same_calls_whatever_its_size(name):
    head = _build(name, torch.float32, training=True)
    small, large = _count_calls(head, [(4, 4)] * 2), _count_calls(head, [(9, 9)] * 12)
    # Checked annotations make a few calls more or less; a loop over pairs or nodes would make hundreds.
    assert abs(large - small) <= 0.02 * small
