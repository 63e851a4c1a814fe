import doctest
import itertools
import re
import time

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from quadmatch import quadratic_assignment
from quadmatch.bench.batch import make_pairs
from quadmatch.graphs.assignment_methods import METHODS, relax, relax_hot
from quadmatch.graphs.assignment_options import Settings
from quadmatch.graphs.quadratic_assignment import make_task

every_method = pytest.mark.parametrize("method", METHODS)


def make_pair(n: int, seed: int, integer: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(0, 9, (2, n, n)) if integer else rng.normal(size=(2, n, n)))


def make_copies(n: int, correlation: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two random graphs whose edges are correlated, the second relabelled; and where each node went."""
    rng = np.random.default_rng(seed)
    first, again, kept = rng.random((3, n, n)) < np.array([0.5, 0.5, correlation])[:, None, None]
    pair = [np.triu(edges, 1) for edges in (first, np.where(kept, first, again))]
    source, target = (edges + edges.T for edges in pair)
    order = rng.permutation(n)
    return source, target[order][:, order], np.argsort(order)


class NoWorse(doctest.OutputChecker):
    """An objective may be better than documented; another permutation and another number of steps may reach it."""

    def check_output(self, want, got, optionflags):
        values = [re.findall(r"^\s*fun: (\S+)$|^(\d+\.?\d*)(?: *# may vary)?$", text, re.M) for text in (want, got)]
        if not values[0]:
            return want == got
        documented, ours = ([float("".join(value)) for value in found] for found in values)
        return len(ours) == len(documented) and all(a <= b for a, b in zip(ours, documented))


def run_examples(text: str) -> int:
    """Run a docstring of scipy's with only the import changed; the number of examples."""
    own = "from quadmatch import quadratic_assignment"
    text, count = re.subn("from scipy.optimize import quadratic_assignment", own, text)
    assert count == 1
    test = doctest.DocTestParser().get_doctest(text, {}, "scipy", None, 0)
    runner = doctest.DocTestRunner(NoWorse(), verbose=False)
    problems: list[str] = []
    runner.run(test, out=problems.append)
    assert not problems, "".join(problems)
    return len(test.examples)


def test_examples_of_scipys_documentation_run_with_only_the_import_changed():
    assert run_examples(scipy.optimize.quadratic_assignment.__doc__) > 10
    for name in ("faq", "2opt"):
        text = scipy.optimize.show_options("quadratic_assignment", name, disp=False)
        if ">>>" in text:
            # Random matrices: what is printed there cannot be compared.
            text = re.sub(r"^ *\d\S*( *# may vary)?$", "", text.replace("print(res.fun)", "_ = res.fun"), flags=re.M)
            assert run_examples(text) > 5


@given(st.integers(2, 25), st.integers(0, 999), st.booleans(), st.booleans(), st.integers(0, 3))
def test_faq_is_scipys_to_the_last_node(n, seed, integer, maximize, seeds):
    source, target = make_pair(n, seed, integer)
    rng = np.random.default_rng(seed)
    # Two nodes stay free: scipy takes seeds for all nodes in the order of their rows, whatever these say.
    pairs = np.stack([rng.permutation(n)[: min(seeds, n - 2)] for _ in range(2)], axis=1)
    options = {"maximize": maximize, "partial_match": pairs, "rng": rng}
    ours = quadratic_assignment(source, target, "faq", options)
    theirs = scipy.optimize.quadratic_assignment(source, target, "faq", options)
    assert ours.fun == pytest.approx(theirs.fun)
    assert (ours.col_ind == theirs.col_ind).all()
    assert ours.nit == theirs.nit


@given(st.integers(0, 22), st.integers(0, 99), st.booleans(), st.booleans(), st.sampled_from(["best", "fast"]))
@settings(max_examples=25)
def test_auto_is_never_worse_than_scipys_faq(n, seed, integer, maximize, quality):
    source, target = make_pair(n, seed, integer)
    rng = np.random.default_rng(seed)
    options = {"maximize": maximize, "quality": quality, "rng": seed}
    ours = quadratic_assignment(source, target, options=options)
    theirs = scipy.optimize.quadratic_assignment(source, target, options={"maximize": maximize, "rng": rng})
    sign = -1 if maximize else 1
    assert sign * ours.fun <= sign * theirs.fun + 1e-9


@pytest.mark.parametrize("quality", ["best", "fast"])
def test_auto_beats_scipys_faq_on_average(quality):
    gaps = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        flow = np.triu(np.floor(10 ** rng.uniform(-4, 3, (20, 20))), 1)
        places = rng.integers(0, 20, (20, 2))
        distance = np.abs(places[:, None] - places).sum(-1)
        theirs = scipy.optimize.quadratic_assignment(flow, distance, options={"rng": rng}).fun
        gaps.append(quadratic_assignment(flow, distance, options={"quality": quality, "rng": 0}).fun / theirs)
    assert np.mean(gaps) < 0.97


@every_method
@given(n=st.integers(0, 14), seed=st.integers(0, 999), integer=st.booleans(), seeds=st.integers(0, 14))
@settings(max_examples=12)
def test_result_is_a_permutation_with_its_objective_and_the_seeds(method, n, seed, integer, seeds):
    source, target = make_pair(n, seed, integer)
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.permutation(n)[: min(seeds, n)] for _ in range(2)], axis=1)
    kept = source.copy(), target.copy(), pairs.copy()
    options = {"partial_match": pairs, "rng": 1} | ({} if method in ("faq", "2opt") else {"quality": "fast"})
    result = quadratic_assignment(source, target, method, options)
    assert sorted(result.col_ind) == list(range(n))
    assert (result.col_ind[pairs[:, 0]] == pairs[:, 1]).all()
    matrix = np.eye(n)[result.col_ind]
    assert result.fun == pytest.approx(np.trace(source.T @ matrix @ target @ matrix.T))
    assert np.issubdtype(np.asarray(result.fun).dtype, np.integer) == integer
    assert all((before == after).all() for before, after in zip(kept, (source, target, pairs)))
    again = quadratic_assignment(source, target, method, options)
    assert (result.col_ind == again.col_ind).all()
    assert (result.fun, result.nit) == (again.fun, again.nit)


@every_method
@given(n=st.integers(1, 12), seed=st.integers(0, 999))
@settings(max_examples=8)
def test_maximising_is_minimising_the_negative(method, n, seed):
    source, target = make_pair(n, seed)
    most = quadratic_assignment(source, target, method, {"maximize": True, "rng": 3})
    least = quadratic_assignment(-source, target, method, {"rng": 3})
    assert (most.col_ind == least.col_ind).all()
    assert most.fun == pytest.approx(-least.fun)


@given(st.integers(2, 7), st.integers(0, 999), st.integers(0, 2))
def test_few_free_nodes_get_the_optimum(n, seed, seeds):
    source, target = make_pair(n + seeds, seed)
    pairs = np.arange(seeds)[:, None] + np.array([0, 1])
    result = quadratic_assignment(source, target, options={"partial_match": pairs})
    rest = np.setdiff1d(np.arange(n + seeds), pairs[:, 1])
    least = np.inf
    for order in itertools.islice(itertools.permutations(rest), 5040):
        columns = np.concatenate([pairs[:, 1], order]).astype(int)
        least = min(least, (source * target[columns][:, columns]).sum())
    assert result.fun == pytest.approx(least)


@given(st.integers(8, 10), st.integers(0, 99))
@settings(max_examples=10)
def test_relabelling_does_not_change_the_objective(n, seed):
    source, target = make_pair(n, seed)
    order = np.random.default_rng(seed).permutation(n)
    plain = quadratic_assignment(source, target, options={"rng": 0}).fun
    assert quadratic_assignment(source[order][:, order], target, options={"rng": 0}).fun == pytest.approx(plain)
    assert quadratic_assignment(target, source, options={"rng": 0}).fun == pytest.approx(plain)


@pytest.mark.parametrize("method", ["auto", "frank_wolfe"])
def test_noisy_copies_are_found(method):
    for seed in range(3):
        source, target, truth = make_copies(50, 0.9, seed)
        result = quadratic_assignment(source, target, method, {"maximize": True, "rng": seed})
        assert (result.col_ind == truth).mean() == 1


def test_a_guess_is_where_the_descent_begins():
    source, target = make_pair(12, 0)
    best = quadratic_assignment(source, target, options={"rng": 0})
    guess = np.stack([np.arange(12), best.col_ind], axis=1)
    for method in ("2opt", "tabu", "auto"):
        refined = quadratic_assignment(source, target, method, {"partial_guess": guess, "rng": 0})
        assert refined.fun <= best.fun + 1e-9
    assert quadratic_assignment(source, target, "2opt", {"partial_guess": guess}).nit == 12 * 13 / 2
    # A guess gives way to a seed that contradicts it.
    seeds = [[0, best.col_ind[1]]]
    seeded = quadratic_assignment(source, target, "2opt", {"partial_guess": guess[:6], "partial_match": seeds})
    assert seeded.col_ind[0] == best.col_ind[1]


def test_a_large_noisy_copy_is_also_relaxed_at_a_high_temperature():
    (a,), (b,) = make_pairs(1, 160, 160, seed=4, weighted=False)
    everything = [np.arange(160)] * 2
    task = make_task(a, b, everything, Settings(maximize=True))
    soft, hot = task.evaluate(relax(task, True, "barycenter").permutation), task.evaluate(relax_hot(task).permutation)
    assert hot < 1.02 * soft  # both are negative: the objective is made large
    # The least of all searches, which would not find it by itself.
    found = quadratic_assignment(a, b, options={"maximize": True, "rng": 0, "quality": "standard", "starts": 1})
    assert found.fun >= -hot


def test_starting_points_of_a_relaxation():
    source, target = make_pair(10, 0)
    best = quadratic_assignment(source, target).col_ind
    for method in ("faq", "frank_wolfe", "auto"):
        found = quadratic_assignment(source, target, method, {"P0": np.eye(10)[best], "maxiter": 1, "rng": 0})
        assert (found.col_ind == best).all()
    drawn = [quadratic_assignment(source, target, "faq", {"P0": "randomized", "rng": k}).fun for k in range(8)]
    assert len(set(drawn)) > 1
    shuffled = quadratic_assignment(source, target, "faq", {"shuffle_input": True, "rng": 0})
    assert sorted(shuffled.col_ind) == list(range(10))


def test_more_starts_take_more_steps_and_fast_takes_fewer():
    source, target = make_pair(40, 1)
    steps = [
        quadratic_assignment(source, target, "tabu", {"rng": 0, **options}).nit
        for options in ({"quality": "fast"}, {"starts": 4}, {}, {"starts": 20})
    ]
    assert steps == sorted(set(steps))


@every_method
def test_time_limit_is_kept(method):
    source, target = make_pair(60, 0)
    options = {"time_limit": 0.3, "rng": 0} | ({} if method in ("faq", "2opt") else {"starts": 10**7})
    quadratic_assignment(source, target, method, options | {"time_limit": 0.01})
    begun = time.process_time()  # which does not run while others have the processor
    result = quadratic_assignment(source, target, method, options)
    assert time.process_time() - begun < 30
    assert sorted(result.col_ind) == list(range(60))


@pytest.mark.parametrize("n", [0, 1, 2])
@every_method
def test_smallest_sizes(n, method):
    empty = quadratic_assignment(np.ones((n, n)), np.ones((n, n)), method)
    assert empty.col_ind.tolist() == list(range(n)) or n == 2
    assert empty.fun == n * n
    assert empty.col_ind.dtype == np.int64


@every_method
def test_matrices_without_any_difference(method):
    for source, target in ((np.zeros((10, 10)), np.ones((10, 10))), (np.ones((10, 10)), np.ones((10, 10)))):
        result = quadratic_assignment(source, target, method)
        assert result.fun == (source * target).sum()
        assert sorted(result.col_ind) == list(range(10))
