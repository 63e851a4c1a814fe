"""Every search ends: rounding never keeps one going, and Ctrl-C is heard while compiled loops run.

QUADMATCH_FUZZ_CALLS says how many random pairs are tried; 100,000 take a minute.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import quadmatch as qm
from quadmatch.solvers.search.exchange import CLIMB
from quadmatch.solvers.search.strategy import ROUNDS_BEST, ROUNDS_PARTIAL, ROUNDS_UNEQUAL, TEMPERATURES

CALLS = int(os.environ.get("QUADMATCH_FUZZ_CALLS", "20000"))
TOGETHER = 500


def limit_steps(n: int, m: int, best: bool) -> int:
    """No pair may take more: the steps asked for, and for each search the climb that may follow."""
    searches = 2 + len(TEMPERATURES)
    rounds = ROUNDS_BEST if best else max(ROUNDS_UNEQUAL, ROUNDS_PARTIAL)
    return int(searches * (rounds + CLIMB) * (n + m) + 60 * len(TEMPERATURES))


def draw_graph(rng: np.random.Generator, size: int) -> np.ndarray:
    """Weights of one of the kinds that broke a search: many magnitudes, outliers, ties, directions."""
    kind = rng.integers(6)
    weights = rng.random((size, size))
    if kind == 1:
        weights = 10.0 ** rng.uniform(-20, 20, (size, size))
    elif kind == 2:
        weights[rng.random((size, size)) < 0.1] = 10.0 ** rng.uniform(3, 12)
    elif kind == 3:
        weights = rng.integers(-3, 4, (size, size)).astype(float)
    elif kind == 4:
        weights = rng.normal(size=(size, size)) * 10.0 ** rng.uniform(-60, 40)
    elif kind == 5:
        weights = (weights < 0.4).astype(float)
    weights[rng.random((size, size)) < rng.random()] = 0
    if rng.random() < 0.7:
        weights = np.triu(weights, 1) + np.triu(weights, 1).T
    np.fill_diagonal(weights, 0)
    return weights


def test_the_pair_that_hung_is_matched():
    a, b = np.zeros((2, 2)), np.zeros((4, 4))
    a[0, 1] = a[1, 0] = 572.3179079542482
    b[1, 2] = b[2, 1] = 262.28830703560857
    b[2, 3] = b[3, 2] = 1e4
    result = qm.match_graphs(a, b)
    assert {tuple(pair) for pair in result.pairs.tolist()} in ({(0, 1), (1, 2)}, {(0, 2), (1, 1)})
    assert result.iterations <= limit_steps(2, 4, False)


@pytest.mark.parametrize(
    ("options", "smallest", "largest", "calls"),
    [
        ({}, 1, 14, CALLS // 4),
        ({"partial": True}, 1, 14, CALLS // 4),
        ({"quality": "best"}, 1, 10, CALLS // 4),
        ({"unary": True}, 1, 14, CALLS // 4),
        ({}, 15, 40, CALLS // 200),  # from 21 on there are relaxations too
        ({"unary": True}, 15, 40, CALLS // 200),
    ],
)
def test_every_search_ends(options: dict, smallest: int, largest: int, calls: int):
    rng = np.random.default_rng(len(options) + len(str(options)) + smallest)
    best = options.get("quality") == "best"
    for start in range(0, max(1, calls), TOGETHER):
        sizes = rng.integers(smallest, largest, (min(TOGETHER, calls - start) or 1, 2))
        left, right = ([draw_graph(rng, int(n)) for n in side] for side in sizes.T)
        given = dict(options)
        if given.pop("unary", False):
            given["unary"] = [
                rng.normal(size=(len(a), len(b))) * 10.0 ** rng.uniform(-9, 9) for a, b in zip(left, right)
            ]
        for result, (n, m) in zip(qm.match_graphs(left, right, **given), sizes.tolist()):
            assert result.iterations <= limit_steps(n, m, best)
            assert np.isfinite(result.objective)
            assert len({j for _, j in result.pairs.tolist()}) == len(result.pairs)


@pytest.mark.parametrize("method", ["2opt", "auto"])
def test_quadratic_assignment_ends(method: str):
    rng = np.random.default_rng(5)
    for _ in range(max(1, CALLS // 100)):
        size = int(rng.integers(2, 14))
        a, b = draw_graph(rng, size), draw_graph(rng, size)
        found = qm.quadratic_assignment(a, b, method=method, options={"rng": 0})
        assert sorted(found.col_ind.tolist()) == list(range(size))


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    [
        "qm.match_graphs([a] * 200, [b] * 200, quality='best')",
        "qm.quadratic_assignment(a, b, options={'starts': 10**7})",
        "qm.match_graphs(none, none, unary=product)",
        "hungarian(torch.tensor(product)[None])",
        "frank_wolfe_hard(*(torch.rand(1, 1000, 1000) for _ in range(3)), iterations=10**6, step='schedule')",
        "call_abandoning(time.sleep, 10**4)",
    ],
)
def test_ctrl_c_ends_a_long_search(call: str):
    """Each call takes minutes but for the third and fourth, which take half a minute on a fast machine."""
    program = textwrap.dedent(f"""
        import signal, time
        import numpy as np, torch, quadmatch as qm
        from quadmatch.solvers.compilation import call_abandoning
        from quadmatch.solvers.linear.hungarian import hungarian
        from quadmatch.solvers.quadratic.frank_wolfe_hard import frank_wolfe_hard
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a script starts in the background
        a, b = np.random.default_rng(0).random((2, 60, 60))
        np.fill_diagonal(a, 0), np.fill_diagonal(b, 0)
        qm.match_graphs(a, b, unary=a), qm.match_graphs(a, b), qm.quadratic_assignment(a, b, options={{"starts": 1}})
        hungarian(torch.tensor(a)[None]), frank_wolfe_hard(*3 * (torch.tensor(a)[None],))
        none = np.zeros((3500, 3500))
        product = np.outer(np.arange(3500.0), np.arange(3500.0))  # what takes linear assignment longest
        print("ready", flush=True)
        {call}
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline().strip() == b"ready"
        try:
            run.wait(2)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)
        try:
            _, errors = run.communicate(timeout=20)
        finally:
            run.kill()
    assert errors.strip().endswith(b"KeyboardInterrupt")


@pytest.mark.parametrize("call", [qm.match_graphs, qm.quadratic_assignment])
def test_ctrl_c_is_a_keyboard_interrupt_even_if_a_loop_made_another_error_of_it(call, monkeypatch):
    def complain(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as cause:
            raise SystemError("returned a result with an exception set") from cause

    monkeypatch.setattr("quadmatch.graphs.match_graphs.read_inputs", complain)
    monkeypatch.setattr("quadmatch.graphs.quadratic_assignment.read_matrices", complain)
    with pytest.raises(KeyboardInterrupt):
        call(np.zeros((2, 2)), np.zeros((2, 2)))
