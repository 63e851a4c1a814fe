from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_pairs import random_graph, random_pair

from quadmatch import Features, GraphPair, Matching, collate
from quadmatch.decode import decode
from quadmatch.evaluation.report import accuracy, count_matches
from quadmatch.layers.affinity import divide_by_largest
from quadmatch.layers.quadratic_constraint import QuadraticConstraint, QuadraticStep
from quadmatch.solvers.linear.sinkhorn import sinkhorn
from quadmatch.solvers.quadratic.frank_wolfe import frank_wolfe
from quadmatch.solvers.quadratic.objective import quadratic_objective


def _match(pair: GraphPair, scores: torch.Tensor, temperature: float = 0.05) -> Matching:
    assignment = sinkhorn(scores, pair.mask, temperature=temperature)
    return Matching(scores, assignment, pair.source.adjacency, pair.target.adjacency)


def _score(pair: GraphPair, source: Features, target: Features) -> Matching:
    """A head that is no module: inner products of the features."""
    return _match(pair, source.local @ target.local.mT)


def _copies(count: int, size: int, noise: float, seed: int = 0) -> tuple[GraphPair, torch.Tensor]:
    """Relabelled copies of graphs, and scores that are the truth under noise."""
    generator = torch.Generator().manual_seed(seed)
    pairs = []
    for _ in range(count):
        source, order = random_graph(size, generator), torch.randperm(size, generator=generator)
        target = replace(source, points=source.points[:, order], adjacency=source.adjacency[:, order][:, :, order])
        truth = torch.zeros(1, size, size, dtype=torch.bool)
        truth[0, order, torch.arange(size)] = True
        pairs.append(GraphPair(source, target, truth))
    pair = collate(pairs)
    noisy = noise * torch.randn(pair.truth.shape, generator=generator, dtype=torch.float64)
    return pair, pair.truth + noisy


def test_structure_corrects_what_scores_get_wrong():
    pair, scores = _copies(40, 8, noise=0.6)
    plain = _match(pair, scores)
    constrained = QuadraticStep()(plain, pair.mask)
    permutations = [decode(one, pair.mask, weight=0.0).assignment for one in (plain, constrained)]
    right = [accuracy(count_matches(one, pair.truth)) for one in permutations]
    assert right[0] < 0.85
    assert right[1] > right[0] + 0.1


@settings(max_examples=10)
@given(st.integers(2, 7), st.integers(2, 7), st.integers(0, 99))
def test_the_objective_falls(n, m, seed):
    """With the exact step it never rises; with the paper's schedule it may."""
    pair, source, target = random_pair(n, m, seed=seed)
    plain = _score(pair, source, target)
    head = QuadraticConstraint(_score, step="line_search", temperature=0.02, outer=1)
    constrained = head(pair, source, target)
    terms = plain.assignment, plain.structure_source, plain.structure_target
    before, after = (quadratic_objective(x.assignment, *terms, weight=0.1) for x in (plain, constrained))
    assert float(after) <= float(before) + 1e-3


def test_the_paper_gives_the_solution_itself():
    pair, scores = _copies(3, 6, noise=0.5)
    matching = _match(pair, scores)
    constrained = QuadraticStep(weight=0.2, outer=2, inner=3, temperature=0.3)(matching, pair.mask)
    structures = matching.structure_source, matching.structure_target
    start = matching.assignment
    wanted = frank_wolfe(start, *structures, pair.mask, start=start, weight=0.2, outer=2, inner=3, temperature=0.3)
    assert torch.equal(constrained.assignment, wanted)
    assert constrained.earlier == ()
    assert torch.equal(constrained.unconstrained, matching.assignment)
    assert torch.equal(constrained.release().assignment, matching.assignment)
    assert torch.equal(constrained.unary, matching.unary)


@pytest.mark.parametrize("training", [True, False])
def test_the_released_code_adds_it_to_the_scores(training):
    pair, scores = _copies(3, 6, noise=0.5)
    matching = _match(pair, scores)
    step = QuadraticStep(unary="scores", output="residual", direction="shifted", inner=3, divide=True)
    constrained = step.train(training)(matching, pair.mask)
    x = frank_wolfe(
        scores,
        matching.structure_source,
        matching.structure_target,
        pair.mask,
        start=scores,
        direction="shifted",
        inner=3,
    )
    total = scores + 0.5 * x
    if not training:
        total = divide_by_largest(total, pair.mask)
    torch.testing.assert_close(constrained.assignment, sinkhorn(total, pair.mask, temperature=0.05))


def test_as_logits_a_constraint_without_weight_changes_nothing():
    pair, scores = _copies(40, 8, noise=0.6)
    plain = _match(pair, scores)
    options = {"unary": "logits", "output_temperature": 0.05}
    same = QuadraticStep(weight=0.0, temperature=1.0, **options)(plain, pair.mask)
    torch.testing.assert_close(same.assignment, plain.assignment, atol=1e-6, rtol=0)
    flattened = QuadraticStep(weight=0.0, temperature=1.0)(plain, pair.mask)
    assert (flattened.assignment - plain.assignment).abs().max() > 0.1
    corrected = QuadraticStep(weight=0.5, temperature=0.5, **options)(plain, pair.mask)
    before, after = (decode(one, pair.mask, weight=0.0).assignment for one in (plain, corrected))
    right = [accuracy(count_matches(one, pair.truth)) for one in (before, after)]
    assert right[1] > right[0]


def _normalise(scores: torch.Tensor, rounds: int = 400) -> torch.Tensor:
    """Sinkhorn of one square matrix, row by row and column by column until nothing changes."""
    x = (scores - scores.max()).exp()
    for _ in range(rounds):
        x = x / x.sum(1, keepdim=True)
        x = x / x.sum(0, keepdim=True)
    return x


@pytest.mark.parametrize(("weight", "heat"), [(0.02, 1.0), (0.3, 0.5)])
def test_as_logits_the_steps_are_those_of_their_description(weight, heat):
    """The form that ships, written out for one pair: X_u is s/τ, and every step a Sinkhorn of what falls steepest."""
    pair, scores = _copies(1, 6, noise=0.5)
    s, a, b = scores[0], pair.source.adjacency[0], pair.target.adjacency[0]
    options = {"unary": "logits", "output_temperature": heat, "weight": weight, "temperature": 1 - weight}
    step = QuadraticStep(outer=1, inner=5, sinkhorn_iterations=400, **options)
    x = _normalise(s / heat)
    for k in range(5):
        rest = a - x @ b @ x.T
        slope = -2 * weight * (rest.T @ x @ b + rest @ x @ b.T) - (1 - weight) * s / heat
        x = x + 2 / (k + 2) * (_normalise(-slope / (1 - weight)) - x)
    matching = replace(_match(pair, scores, heat), assignment=_normalise(s / heat)[None])
    torch.testing.assert_close(step(matching, pair.mask).assignment[0], x, atol=1e-6, rtol=0)


def test_the_share_and_the_rounds_of_sinkhorn_are_used():
    pair, scores = _copies(1, 6, noise=0.5)
    matching, inner = _match(pair, scores), {"outer": 2, "inner": 2}
    x = QuadraticStep(sinkhorn_iterations=3, **inner)(matching, pair.mask).assignment
    wanted = frank_wolfe(
        matching.assignment,
        matching.structure_source,
        matching.structure_target,
        pair.mask,
        start=matching.assignment,
        sinkhorn_iterations=3,
        **inner,
    )
    assert torch.equal(x, wanted)
    assert (QuadraticStep(**inner)(matching, pair.mask).assignment - x).abs().max() > 1e-9
    residual = QuadraticStep(output="residual", share=2.0, sinkhorn_iterations=400, **inner)(matching, pair.mask)
    full = QuadraticStep(sinkhorn_iterations=400, **inner)(matching, pair.mask).assignment[0]
    torch.testing.assert_close(
        residual.assignment[0], _normalise((scores[0] + 2 * full) / 0.05, 4000), atol=1e-4, rtol=0
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unary": "scores", "output": "residual", "direction": "shifted"},
        {"unary": "logits", "temperature": 0.9, "output_temperature": 0.5},
    ],
)
def test_gradients_reach_scores_and_structures(options):
    pair, scores = _copies(1, 4, noise=0.3)
    a = (pair.source.adjacency + 0.1).requires_grad_()
    b = (pair.target.adjacency + 0.2).requires_grad_()
    step = QuadraticStep(outer=1, inner=2, **options)

    def compute(scores: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        matching = replace(_match(pair, scores, 0.5), structure_source=a, structure_target=b)
        return step(matching, pair.mask).assignment

    assert torch.autograd.gradcheck(compute, (scores.requires_grad_(), a, b), fast_mode=True)
    compute(scores, a, b).square().sum().backward()
    assert all(values.grad.any() for values in (scores, a, b))


def test_without_steps_or_structure_nothing_is_gained():
    """λ = 0 pulls towards the unary term alone: the match stays."""
    pair, scores = _copies(5, 6, noise=0.5)
    plain = _match(pair, scores)
    for step in (QuadraticStep(weight=0.0), QuadraticStep(outer=0)):
        constrained = step(plain, pair.mask)
        before, after = (decode(x, pair.mask, weight=0.0).assignment for x in (plain, constrained))
        assert torch.equal(before, after)


def test_constraints_nest_and_remember():
    pair, source, target = random_pair(5, 6)
    twice = QuadraticConstraint(QuadraticConstraint(_score))(pair, source, target)
    assert torch.equal(twice.release().assignment, _score(pair, source, target).assignment)
    once = QuadraticConstraint(_score)(pair, source, target)
    assert torch.equal(twice.assignment, QuadraticStep()(once, pair.mask).assignment)


@pytest.mark.parametrize(
    "options",
    [
        {"sinkhorn_iterations": 3},
        {"output": "residual", "share": 0.9},
        {"output": "residual", "divide": True},
        {"weight": 0.4},
        {"temperature": 0.4},
        {"outer": 1},
        {"inner": 1},
        {"step": "line_search"},
        {"direction": "shifted"},
        {"unary": "logits", "output_temperature": 0.3},
    ],
)
def test_every_switch_of_the_step_is_one_of_the_constraint(options):
    pair, source, target = random_pair(5, 6)
    plain = _score(pair, source, target)
    wanted = QuadraticStep(**options).eval()(plain, pair.mask).assignment
    assert torch.equal(QuadraticConstraint(_score, **options).eval()(pair, source, target).assignment, wanted)
    usual = {name: value for name, value in options.items() if name == "output"}
    assert not torch.equal(wanted, QuadraticStep(**usual).eval()(plain, pair.mask).assignment)


def test_detached_directions_carry_no_gradient():
    pair, scores = _copies(1, 4, noise=0.3)
    scores.requires_grad_()
    outputs = [
        QuadraticStep(outer=1, inner=2, detach=detach)(_match(pair, scores, 0.5), pair.mask).assignment
        for detach in (False, True)
    ]
    torch.testing.assert_close(*outputs)
    assert torch.autograd.grad(outputs[0].square().sum(), scores, retain_graph=True)[0].any()
    rest = torch.autograd.grad(outputs[1].square().sum(), scores, allow_unused=True)[0]
    assert rest is None or not rest.any()


def test_an_unknown_switch_is_named():
    with pytest.raises(TypeError, match="no option lambda_"):
        QuadraticConstraint(_score, lambda_=0.2)


def test_a_module_inside_is_registered():
    inner = torch.nn.Linear(2, 2)
    inner.forward = _score  # type: ignore[method-assign]
    assert [name for name, _ in QuadraticConstraint(inner).named_parameters()] == ["head.weight", "head.bias"]
