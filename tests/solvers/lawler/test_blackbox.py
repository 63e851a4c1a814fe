"""The combinatorial solver of Lawler's form beside all matchings there are, and the gradient through it."""

from functools import partial
from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from quadmatch.solvers.lawler.blackbox import solve_blackbox
from quadmatch.solvers.lawler.fixed_point import _choose_step, _keep, find_fixed_point
from quadmatch.solvers.lawler.operator import EdgeAffinity, list_edges
from quadmatch.solvers.linear.hungarian import hungarian


def make_problem(n: int, m: int, seed: int, *, offset: float = 0.0) -> EdgeAffinity:
    """Random symmetric affinities of all edges; with an `offset`, fewer matches are worth making."""
    generator = torch.Generator().manual_seed(seed)
    a, b = (list_edges(1 - torch.eye(size, dtype=torch.float64)[None]) for size in (n, m))
    k = torch.randn(n, m, n, m, generator=generator, dtype=torch.float64)
    k = (k + k.permute(2, 3, 0, 1)) / 4
    starts, ends, other_starts, other_ends = a[0, :, 0], a[0, :, 1], b[0, :, 0], b[0, :, 1]
    edge = k[starts[:, None], other_starts, ends[:, None], other_ends]
    unary = torch.randn(1, n, m, generator=generator, dtype=torch.float64) - offset
    return EdgeAffinity(unary, edge[None], a, b)


def list_matchings(n: int, m: int, sizes: range):
    for size in sizes:
        for rows in combinations(range(n), size):
            for columns in permutations(range(m), size):
                x = torch.zeros(1, n, m, dtype=torch.float64)
                x[0, list(rows), list(columns)] = 1
                yield x


def find_best(problem: EdgeAffinity, sizes: range) -> float:
    n, m = problem.unary.shape[1:]
    every = torch.cat(list(list_matchings(n, m, sizes)))
    unary = (problem.unary * every).sum((1, 2))
    return float((unary + problem.score(every[None])[0] - (problem.unary * every.square()).sum((1, 2))).max())


@pytest.mark.parametrize("left_out", [True, False])
def test_the_solver_is_near_the_best_of_all_matchings(left_out):
    found, best, start = [], [], []
    for seed in range(40):
        n, m = 3 + seed % 2, 4
        problem = make_problem(n, m, seed, offset=0.5 * left_out)
        mask = torch.ones(1, n, m, dtype=torch.bool)
        x = find_fixed_point(problem, mask, partial=left_out)
        assert ((x == 0) | (x == 1)).all()
        assert max(x.sum(1).max(), x.sum(2).max()) <= 1
        assert left_out or x.sum() == n
        first = hungarian(problem.unary, mask, threshold=0.0 if left_out else None)
        found.append(float(problem.score(x)))
        start.append(float(problem.score(first)))
        best.append(find_best(problem, range(n + 1) if left_out else range(n, n + 1)))
    assert all(f <= b + 1e-9 and f >= s for f, b, s in zip(found, best, start))
    assert sum(f > b - 1e-9 for f, b in zip(found, best)) >= 32


def test_a_constant_added_to_all_similarities_changes_no_complete_matching():
    mask = torch.ones(1, 6, 6, dtype=torch.bool)
    for seed in range(20):
        problem = make_problem(6, 6, seed)
        raised = make_problem(6, 6, seed, offset=-20.0)
        assert torch.equal(find_fixed_point(problem, mask), find_fixed_point(raised, mask)), seed


def test_padding_and_batch_mates_change_no_solution():
    small, large = make_problem(3, 4, 1), make_problem(4, 4, 2)
    mask = torch.ones(2, 4, 4, dtype=torch.bool)
    mask[0, 3] = False
    unary = torch.cat([torch.nn.functional.pad(small.unary, (0, 0, 0, 1), value=9.0), large.unary])
    extra = large.edge.shape[1] - small.edge.shape[1]
    edge = torch.cat([torch.nn.functional.pad(small.edge, (0, 0, 0, extra), value=9.0), large.edge])
    lists = torch.cat([torch.nn.functional.pad(small.source_edges, (0, 0, 0, extra), value=-1), large.source_edges])
    both = find_fixed_point(EdgeAffinity(unary, edge, lists, large.target_edges.expand(2, -1, -1)), mask)
    alone = find_fixed_point(small, torch.ones(1, 3, 4, dtype=torch.bool))
    assert torch.equal(both[0, :3], alone[0])
    assert not both[0, 3].any()


def test_the_gradient_is_the_difference_of_two_solutions():
    problem, wanted = make_problem(4, 4, 3), torch.eye(4, dtype=torch.float64)[None]
    mask, strength = torch.ones(1, 4, 4, dtype=torch.bool), 80.0
    unary, edge = problem.unary.clone().requires_grad_(), problem.edge.clone().requires_grad_()
    learned = EdgeAffinity(unary, edge, problem.source_edges, problem.target_edges)
    solve = partial(find_fixed_point, mask=mask)
    x = solve_blackbox(learned, solve, strength=strength)
    assert torch.equal(x, solve(problem))
    assert not torch.equal(x, wanted)
    (x * (1 - wanted)).sum().backward()
    # So strong a push makes the wanted matches the solution; what both use has no gradient.
    torch.testing.assert_close(unary.grad, (x - wanted).detach() / strength)
    for e, (i, j) in enumerate(problem.source_edges[0].tolist()):
        for f, (y, z) in enumerate(problem.target_edges[0].tolist()):
            used = (x[0, i, y] * x[0, j, z] - wanted[0, i, y] * wanted[0, j, z]).detach()
            assert float(edge.grad[0, e, f]) == pytest.approx(float(used) / strength)


def test_a_step_along_the_gradient_lowers_the_loss_in_the_end():
    problem, wanted = make_problem(4, 5, 4), torch.eye(4, 5, dtype=torch.float64)[None]
    unary = problem.unary.clone().requires_grad_()
    solve = partial(find_fixed_point, mask=torch.ones(1, 4, 5, dtype=torch.bool))
    losses = []
    for _ in range(60):
        learned = EdgeAffinity(unary, problem.edge, problem.source_edges, problem.target_edges)
        loss = ((solve_blackbox(learned, solve) - wanted).square()).sum()
        losses.append(float(loss.detach()))
        (gradient,) = torch.autograd.grad(loss, unary)
        unary = (unary - 40 * gradient).detach().requires_grad_()
    assert losses[0] > 0
    assert losses[-1] == 0


def solve_plainly(problem, iterations, left_out):
    """The same steps on the matrix of all affinities: objectives at three places of a line instead of derivatives."""
    n, m = problem.unary.shape[1:]
    unary, k = problem.unary[0].numpy().ravel(), np.zeros((n, m, n, m))
    for e, (i, j) in enumerate(problem.source_edges[0].tolist()):
        for f, (y, z) in enumerate(problem.target_edges[0].tolist()):
            k[i, y, j, z] += float(problem.edge[0, e, f])
    k = k.reshape(n * m, n * m)

    def measure(x):
        return unary @ x + x @ k @ x

    def assign(worth, least):
        worth = worth.reshape(n, m) - least if left_out else worth.reshape(n, m)
        rows, columns = linear_sum_assignment(np.maximum(worth, 0) if left_out else worth, maximize=True)
        x = np.zeros((n, m))
        x[rows, columns] = (worth[rows, columns] > 0) if left_out else 1
        return x.ravel()

    best = assign(unary, 0)
    ends = []
    for x in (best, np.full(n * m, 1 / max(n, m))):
        for _ in range(iterations):
            corner = assign(unary + 2 * k @ x, 0)
            ends.append(corner)
            start, half, end = (measure(x + t * (corner - x)) for t in (0, 0.5, 1))
            bend, slope = 2 * (start - 2 * half + end), 4 * half - 3 * start - end
            places = [1.0, 0.0, *([min(max(-slope / (2 * bend), 0), 1)] if bend < -1e-12 else [])]
            x = x + max(places, key=lambda t: slope * t + bend * t * t) * (corner - x)
        ends.append(assign(x, 0.5))
    return max([best, *ends], key=measure).reshape(n, m)


@pytest.mark.parametrize("left_out", [True, False])
@pytest.mark.parametrize("iterations", [0, 1, 2, 15])
def test_the_solver_takes_the_steps_that_are_described(left_out, iterations):
    found = []
    for seed in range(25):
        n, m = [(4, 4), (5, 5), (3, 5), (5, 4)][seed % 4]
        problem, mask = make_problem(n, m, seed, offset=0.5 * left_out), torch.ones(1, n, m, dtype=torch.bool)
        options = {} if iterations == 15 else {"iterations": iterations}
        x = find_fixed_point(problem, mask, partial=left_out, **options)
        np.testing.assert_array_equal(x[0].numpy(), solve_plainly(problem, iterations, left_out))
        found.append(torch.equal(x, hungarian(problem.unary, mask, threshold=0.0 if left_out else None)))
    assert not all(found) or not iterations


def test_a_step_goes_to_the_top_of_its_parabola():
    slope, curvature = torch.meshgrid(torch.linspace(0, 3, 13), torch.linspace(-4, 4, 17), indexing="ij")
    steps = _choose_step(slope, curvature)
    assert ((steps >= 0) & (steps <= 1)).all()
    every = torch.linspace(0, 1, 1001)[:, None, None]
    reached = slope * steps + curvature * steps**2
    assert (reached >= (slope * every + curvature * every**2).amax(0) - 1e-6).all()
    falling = _choose_step(torch.tensor([-1.0, -1.0, -0.5]), torch.tensor([0.5, -2.0, 1.0]))
    assert falling.tolist() == [0.0, 0.0, 1.0]


def test_only_what_scores_more_replaces_the_best():
    best, most = torch.zeros(2, 1, 1), torch.tensor([1.0, 2.0])
    found = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])[..., None, None]
    kept, scores = _keep(best, most, found, torch.tensor([[3.0, 5.0, 4.0], [2.0, 1.0, 2.0]]))
    assert kept.flatten().tolist() == [2.0, 0.0]
    assert scores.tolist() == [5.0, 2.0]


def test_the_strength_of_a_push_is_eighty_unless_it_is_said():
    problem = make_problem(4, 4, 3)
    asked = []

    def solve(operator):
        asked.append(operator.unary)
        return torch.eye(4, dtype=torch.float64)[None].roll(len(asked), 1)

    unary = problem.unary.clone().requires_grad_()
    learned = EdgeAffinity(unary, problem.edge, problem.source_edges, problem.target_edges)
    x = solve_blackbox(learned, solve)
    weights = torch.arange(16, dtype=torch.float64).view(1, 4, 4)
    (x * weights).sum().backward()
    torch.testing.assert_close(asked[1], problem.unary - 80 * weights)
    torch.testing.assert_close(unary.grad, (x.detach() - x.detach().roll(1, 1)) / 80)
