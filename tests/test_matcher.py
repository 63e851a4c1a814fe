from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from random_pairs import make_features, random_graph
from torch import nn

import quadmatch.features.prepared as prepared_module
from quadmatch.datasets.gathering import gather_pairs, tabulate
from quadmatch.datasets.photo_warps import photo_warps
from quadmatch.datasets.picture import make_picture, pair_pictures
from quadmatch.decode import ITERATIONS, LARGE, compare_sizes, decode, limit_iterations
from quadmatch.features.levels import build_extractor
from quadmatch.features.vgg import VGG16
from quadmatch.graph import Graph, GraphPair, PairBatch
from quadmatch.layers.quadratic_constraint import QuadraticConstraint
from quadmatch.matcher import Matcher
from quadmatch.matching import Matching
from quadmatch.methods.dot_product import DotProduct
from quadmatch.result import MatchResult
from quadmatch.solvers.quadratic.objective import quadratic_objective

RANDOM = np.random.default_rng(0)
PICTURE = RANDOM.integers(0, 256, (48, 64, 3), dtype=np.uint8)
POINTS = RANDOM.uniform(4, 44, (9, 2))


@pytest.fixture(scope="module")
def extractor():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        state = VGG16("relu5_3").state_dict()
    return build_extractor("frozen", weights=state, precision="float32,contiguous,1", size=48)


@pytest.fixture(scope="module")
def matcher(extractor) -> Matcher:
    return Matcher(extractor, QuadraticConstraint(DotProduct(temperature=0.02), outer=1), decoding={}).eval()


def test_a_picture_matches_itself_in_the_users_order(matcher) -> None:
    order = RANDOM.permutation(9)
    result = matcher.match(PICTURE, POINTS, PICTURE, POINTS[order])
    assert result.pairs[:, 0].tolist() == list(range(9))
    assert (order[result.pairs[:, 1]] == result.pairs[:, 0]).all()
    assert result.assignment.shape == (9, 9)
    assert np.allclose(result.scores, result.assignment[tuple(result.pairs.T)])
    assert result.source.shape == (9, 9)
    moved = result.target[np.ix_(result.pairs[:, 1], result.pairs[:, 1])]
    expected = 0.1 * np.square(result.source - moved).sum() - 0.9 * result.scores.sum()
    assert result.objective == pytest.approx(expected, abs=1e-4)


@settings(max_examples=15)
@given(st.integers(0, 5), st.integers(0, 5), st.booleans(), st.booleans(), st.integers(0, 3))
def test_any_numbers_of_points(matcher, rows, columns, partial, constraint, kind) -> None:
    place = {0: POINTS, 1: POINTS[:1].repeat(9, 0), 2: POINTS * [1, 0], 3: POINTS * 10 - 200}[kind]
    given = PICTURE, place[:rows], PICTURE, POINTS[:columns]
    result = matcher.match(*given, partial=partial, constraint=constraint)
    assert result.assignment.shape == (rows, columns)
    assert np.isfinite(result.assignment).all()
    assert len(result.pairs) == len(result.scores)
    assert len(result.pairs) <= min(rows, columns) if partial else len(result.pairs) == min(rows, columns)
    assert len(set(result.pairs[:, 0])) == len(set(result.pairs[:, 1])) == len(result.pairs)
    assert not partial or (result.scores >= matcher.threshold).all()


def test_lists_give_what_single_pairs_give_and_prepare_each_picture_once(matcher, monkeypatch) -> None:
    other = Image.fromarray(PICTURE[::-1].copy())
    images, points = [PICTURE, other, PICTURE, PICTURE], [POINTS, POINTS[:4], POINTS[2:7], POINTS]
    targets, goals = [other, other, PICTURE, other], [POINTS, POINTS[:4], POINTS, POINTS[:1]]
    single = [matcher.match(*one) for one in zip(images, points, targets, goals)]
    seen = []
    extract = matcher.features.extract
    monkeypatch.setattr(matcher.features, "extract", lambda i, p: seen.append(len(i)) or extract(i, p))
    monkeypatch.setattr(prepared_module, "ENTRIES", 100)
    several = matcher.match(images, points, targets, goals)
    assert sum(seen) == 5
    for one, alone in zip(several, single):
        assert np.array_equal(one.pairs, alone.pairs)
        assert np.allclose(one.assignment, alone.assignment, atol=1e-4)
    assert matcher.match([], [], [], []) == []


def test_boxes_say_what_is_seen(matcher) -> None:
    moved = np.zeros((100, 100, 3), np.uint8)
    moved[30:78, 20:84] = PICTURE
    points = POINTS[:5] + np.array([20, 30])
    alone = matcher.match(PICTURE, POINTS[:5], PICTURE, POINTS, box_a=(0, 0, 64, 48))
    again = matcher.match(moved, points, PICTURE, POINTS, box_a=(20, 30, 84, 78))
    assert np.allclose(alone.assignment, again.assignment, atol=1e-3)
    whole = matcher.match([moved], [points], [PICTURE], [POINTS], box_a=[(0, 0, 100, 100)])[0]
    assert not np.allclose(alone.assignment, whole.assignment, atol=1e-3)


def test_constraint_off_is_a_plain_head(matcher, extractor) -> None:
    plain = Matcher(extractor, DotProduct(temperature=0.02))
    expected = plain.match(PICTURE, POINTS, PICTURE[::-1], POINTS[::-1])
    found = matcher.match(PICTURE, POINTS, PICTURE[::-1], POINTS[::-1], constraint=False)
    assert np.array_equal(found.pairs, expected.pairs)
    assert np.allclose(found.assignment, expected.assignment)
    constrained = matcher.match(PICTURE, POINTS, PICTURE[::-1], POINTS[::-1])
    assert not np.allclose(constrained.assignment, expected.assignment, atol=1e-3)


class Swapped(nn.Module):
    """A head that is sure of every node, and wrong about the first two."""

    def forward(self, pair, source, target) -> Matching:
        soft = torch.full(pair.mask.shape, 0.01).masked_fill(~pair.mask, 0)
        for row, size in enumerate(pair.source.sizes.tolist()):
            soft[row, range(size), [1, 0, *range(2, size)][:size]] = 0.9
        return Matching(soft, soft, pair.source.adjacency, pair.target.adjacency, unconstrained=soft, mutual=soft)


def test_local_maps_mend_matches_of_all_nodes_and_no_others(extractor) -> None:
    plain, bending = (Matcher(extractor, Swapped(), local_maps=doubt).eval() for doubt in (0.0, 0.1))
    given = PICTURE, POINTS, PICTURE, POINTS
    wrong, right = [1, 0, *range(2, 9)], list(range(9))
    assert plain.match(*given).pairs[:, 1].tolist() == wrong
    for constraint in (True, False):
        found = bending.match(*given, constraint=constraint)
        assert found.pairs[:, 1].tolist() == right
        assert np.allclose(found.scores, found.assignment[tuple(found.pairs.T)])
        assert found.assignment[0, 0] > found.assignment[0, 1]
    assert bending.match(*given, partial=True).pairs[:, 1].tolist() == wrong
    few = bending.match([PICTURE] * 3, [POINTS, POINTS[:2], POINTS[:0]], [PICTURE] * 3, [POINTS, POINTS[:2], POINTS])
    assert few[0].pairs[:, 1].tolist() == right  # Whatever pairs are beside it.
    assert np.isfinite(few[1].assignment).all()
    assert (len(few[1].pairs), len(few[2].pairs)) == (2, 0)


def test_matching_leaves_the_mode_as_it_was(matcher) -> None:
    seen = []
    hook = matcher.head.register_forward_hook(lambda module, given, result: seen.append(module.training))
    matcher.train()
    matcher.match(PICTURE, POINTS, PICTURE, POINTS)
    hook.remove()
    assert matcher.training
    assert seen == [False]
    matcher.eval()


def test_bad_input_is_named(matcher, tmp_path) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"bad")
    with pytest.raises(ValueError, match=r"image_b: cannot read the picture .*bad\.jpg"):
        matcher.match(PICTURE, POINTS, tmp_path / "bad.jpg", POINTS)
    with pytest.raises(ValueError, match=r"points of image_b\[1\]: keypoint '0' must be finite"):
        matcher.match([PICTURE] * 2, [POINTS] * 2, [PICTURE] * 2, [POINTS, POINTS * np.nan])
    with pytest.raises(ValueError, match=r"points of image_a: keypoint '0' needs two numbers"):
        matcher.match(PICTURE, POINTS.T, PICTURE, POINTS)
    with pytest.raises(ValueError, match="box of image_a"):
        matcher.match(PICTURE, POINTS, PICTURE, POINTS, box_a=(5, 5, 5, 5))
    with pytest.raises(TypeError, match="both"):
        matcher.match([PICTURE], [POINTS], PICTURE, POINTS)
    with pytest.raises(ValueError, match="image_a has 1 pictures and image_b 2"):
        matcher.match([PICTURE], [POINTS], [PICTURE] * 2, [POINTS] * 2)
    with pytest.raises(ValueError, match="2 pictures, 1 lists of points and 2 boxes"):
        matcher.match([PICTURE] * 2, [POINTS], [PICTURE] * 2, [POINTS] * 2)
    with pytest.raises(TypeError, match="FeatureExtractor"):
        Matcher(nn.Identity(), DotProduct()).prepare([make_picture(PICTURE, POINTS)])


def test_pictures_that_are_the_same_are_one() -> None:
    given = ["a.png", "b.png"], [POINTS, POINTS], ["b.png", "b.png"], [POINTS, POINTS + 1]
    pictures, source, target = pair_pictures(*given)
    assert [(one.image, one.name) for one in pictures] == [
        ("a.png", "image_a[0]"),
        ("b.png", "image_a[1]"),
        ("b.png", "image_b[1]"),
    ]
    assert (source, target) == ([0, 1], [1, 2])


class Recorder(nn.Module):
    def forward(self, pair, source, target):
        self.seen = source, target
        return DotProduct()(pair, source, target)


def test_features_are_gathered_by_pair() -> None:
    objects = photo_warps(split="test", views=2, keypoints=4)[:4]
    table = tabulate(objects)
    batch = gather_pairs(table, np.array([2, 0, 3]), np.array([3, 1, 2]))
    features = make_features(torch.rand(4, 4, 3), torch.rand(4, 4, 3), torch.rand(4, 2))
    head = Recorder()
    Matcher(nn.Identity(), head).compare(features, batch)
    source, target = head.seen
    for row, (left, right) in enumerate(((2, 3), (0, 1), (3, 2))):
        assert torch.equal(source.local[row], features.local[left, batch.source_nodes[row]])
        assert torch.equal(target.edge[row], features.edge[right, batch.target_nodes[row]])
        assert torch.equal(target.whole[row], features.whole[right])


def _make_batch(size: int) -> PairBatch:
    graph = random_graph(size, torch.Generator().manual_seed(0))
    nodes = torch.arange(size)[None]
    pair = GraphPair(graph, graph, torch.eye(size, dtype=torch.bool)[None])
    return PairBatch(pair, torch.tensor([0]), torch.tensor([0]), nodes, nodes)


def _make_matching(diagonal: list[float], structure: torch.Tensor) -> Matching:
    soft = torch.diag(torch.tensor(diagonal, dtype=torch.float64))[None]
    return Matching(soft, soft, structure, structure)


def test_a_partial_match_drops_pairs_that_only_their_edges_hold() -> None:
    """The half at the end: edges alone make the discrete constraint keep a pair below the threshold."""
    batch = _make_batch(6)
    structure = 3 * batch.pairs.source.adjacency
    matching = _make_matching([0.9, 0.9, 0.9, 0.9, 0.9, 0.1], structure)
    held = decode(matching, batch.pairs.mask, threshold=0.2, weight=0.5).assignment[0]
    assert held[5, 5] == 1
    matcher = Matcher(nn.Identity(), DotProduct(), decoding={"weight": 0.5}, threshold=0.2)
    found = matcher.decode(matching, batch, partial=True).assignment[0]
    assert torch.equal(found, torch.diag(torch.tensor([1.0, 1, 1, 1, 1, 0], dtype=torch.float64)))
    assert torch.equal(matcher.decode(matching, batch).assignment[0], torch.eye(6, dtype=torch.float64))


def test_a_partial_match_is_searched_under_its_threshold() -> None:
    """The half in the search: a poor pair that is dropped only at the end would take two good ones apart."""
    soft = torch.tensor([[[0.6, 0.55], [0.55, 0.1]]], dtype=torch.float64)
    empty = torch.zeros(1, 2, 2, dtype=torch.float64)
    matching = Matching(soft, soft, empty, empty)
    batch = _make_batch(2)
    matcher = Matcher(nn.Identity(), DotProduct(), threshold=0.5)
    # Without a threshold 0.55 + 0.55 beats 0.6 + 0.1; counted from 0.5 on, the two are worth as much as the one.
    assert matcher.decode(matching, batch).assignment[0].tolist() == [[0, 1], [1, 0]]
    matcher.threshold = 0.52
    assert matcher.decode(matching, batch, partial=True).assignment[0].tolist() == [[1, 0], [0, 0]]


def test_switches_of_decoding_reach_decode() -> None:
    generator = torch.Generator().manual_seed(1)
    scores = torch.rand(1, 7, 7, generator=generator, dtype=torch.float64)
    batch = _make_batch(7)
    weighted = [torch.rand(1, 7, 7, generator=generator, dtype=torch.float64) * 2 for _ in range(2)]
    other = random_graph(7, torch.Generator().manual_seed(5)).adjacency
    matching = Matching(scores, scores, weighted[0] * batch.pairs.source.adjacency, weighted[1] * other)
    found = []
    for options in (
        {},
        {"weight": 0.6},
        {"weight": 0.6, "binary_structure": True},
        {"weight": 0.6, "masked_residual": True},
        {"weight": 0.6, "algorithm": "paper"},
        {"weight": 0.6, "algorithm": "released"},
    ):
        solution = Matcher(nn.Identity(), DotProduct(), decoding=options).decode(matching, batch)
        wanted = decode(matching, batch.pairs.mask, **options)
        assert torch.equal(solution.assignment, wanted.assignment)
        assert torch.equal(solution.objective, wanted.objective)
        found.append(round(float(wanted.objective), 6))
    assert len(set(found)) == len(found)


def test_large_graphs_take_fewer_steps_and_are_matched_alone(matcher) -> None:
    assert limit_iterations(0, 5) == limit_iterations(300, 400) == ITERATIONS
    assert 2 == limit_iterations(2000, 2000) < limit_iterations(600, 600) < ITERATIONS
    side = int(LARGE**0.5) + 1
    few, many = (matcher.prepare([make_picture(PICTURE, RANDOM.uniform(0, 48, (count, 2)))])[0] for count in (2, side))
    prepared = [few, many, many, few]
    sizes = [batch.pairs.pairs.truth.shape for batch in prepared_module.pair_up(prepared, [0, 1, 2, 3], [3, 2, 1, 0])]
    assert sizes == [(1, 2, 2), (1, side, side), (1, side, side), (1, 2, 2)]


class Noisy(nn.Module):
    """A head that answers at random while it is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.dropout = DotProduct(temperature=0.02), nn.Dropout(0.5)
        self.gates = []
        """For each call that is to wait: what it sets when it is there, and what it waits for."""

    def forward(self, pair, source, target):
        if self.gates:
            there, gate = self.gates.pop(0)
            there.set()
            assert gate.wait(60)
        maps = {name: self.dropout(rows) for name, rows in source.maps.items()}
        return self.head(pair, replace(source, maps=maps), target)


def test_threads_that_match_do_not_switch_each_other_to_training(extractor) -> None:
    matcher = Matcher(extractor, Noisy(), decoding={}).train()
    expected = matcher.match(PICTURE, POINTS, PICTURE, POINTS)
    gates = [(threading.Event(), threading.Event()) for _ in range(2)]
    matcher.head.gates, calls = list(gates), []
    with ThreadPoolExecutor(2) as pool:
        try:
            for there, _ in gates:
                calls.append(pool.submit(matcher.match, PICTURE, POINTS, PICTURE, POINTS))
                assert there.wait(60)
            gates[0][1].set()
            found = [calls[0].result()]  # the first leaves while the second is inside
        finally:
            for _, gate in gates:
                gate.set()
        found.append(calls[1].result())
    for one in found:
        assert np.array_equal(one.assignment, expected.assignment)
    assert matcher.training
    assert matcher.head.dropout.training


def test_four_threads_get_the_answers_of_one(extractor) -> None:
    matcher = Matcher(extractor, QuadraticConstraint(Noisy(), outer=1), decoding={}).train()
    random = np.random.default_rng(5)
    given = [(PICTURE, random.uniform(2, 46, (n, 2)), PICTURE[::-1].copy(), POINTS) for n in (9, 3, 12, 1, 7, 5, 9, 8)]
    expected = [matcher.match(*one, partial=n % 2 == 1) for n, one in enumerate(given)]
    start = threading.Barrier(4)

    def work(first: int) -> list[tuple[int, MatchResult]]:
        start.wait(60)
        turns = [(first + step) % len(given) for step in range(len(given))]
        return [(n, matcher.match(*given[n], partial=n % 2 == 1)) for n in turns]

    with ThreadPoolExecutor(4) as pool:
        found = [one for answers in pool.map(work, range(0, 8, 2)) for one in answers]
    assert len(found) == 32
    for n, result in found:
        assert np.array_equal(result.pairs, expected[n].pairs)
        assert np.array_equal(result.assignment, expected[n].assignment)
        assert result.objective == expected[n].objective
    assert matcher.training


def _pair_sizes(sizes: list[tuple[int, int]]) -> GraphPair:
    """Pairs of graphs of which nothing but the sizes is known."""
    sides = []
    for side in zip(*sizes):
        mask = torch.arange(max(side))[None] < torch.tensor(side)[:, None]
        nodes = mask.shape[1]
        sides.append(Graph(torch.zeros(*mask.shape, 2), mask, torch.zeros(len(mask), nodes, nodes)))
    truth = torch.zeros(len(sizes), *(side.mask.shape[1] for side in sides), dtype=torch.bool)
    return GraphPair(*sides, truth)


@pytest.mark.parametrize("partial", [False, True])
def test_the_constraint_and_the_threshold_allow_for_graphs_of_different_sizes(partial: bool) -> None:
    """As λ times the square of n / m and the threshold times n / m would: each pair by its own sizes."""
    sizes = [(3, 6), (6, 6), (5, 4), (1, 6), (0, 3)]
    torch.manual_seed(3)
    pairs, weight = _pair_sizes(sizes), 0.3
    shape = pairs.mask.shape
    edges_of = [torch.rand(len(sizes), nodes, nodes) for nodes in shape[1:]]
    assignment = torch.rand(shape) * pairs.mask
    matching = Matching(assignment, assignment, *edges_of)
    share = [0.5, 1.0, 0.8, 1 / 6, 1.0]
    assert compare_sizes(pairs.mask).tolist() == pytest.approx(share)
    matcher = Matcher(nn.Identity(), DotProduct(), decoding={"weight": weight}, threshold=0.4)
    found = matcher._decode(matching, pairs, partial=partial, constraint=True)
    for row, one in enumerate(share):
        some = Matching(*(tensor[row : row + 1] for tensor in (assignment, assignment, *edges_of)))
        scale = weight * one**2 + 1 - weight
        alone = decode(
            some, pairs.mask[row : row + 1], weight=weight * one**2 / scale, threshold=0.4 * one if partial else None
        )
        kept = alone.assignment * (some.assignment >= 0.4 * one) if partial else alone.assignment
        assert torch.equal(found.assignment[row : row + 1], kept), row
        size = (slice(row, row + 1), slice(0, sizes[row][0]), slice(0, sizes[row][1]))
        left, right = (edges[row : row + 1, :nodes, :nodes] for edges, nodes in zip(edges_of, sizes[row]))
        worth = assignment[size] - (0.4 if partial else 0.0)
        chosen = alone.assignment[0:1, : sizes[row][0], : sizes[row][1]]
        expected = quadratic_objective(chosen, worth, left, right, weight=weight)
        assert float(found.objective[row]) == pytest.approx(float(expected), abs=1e-4)


def test_what_was_published_is_decoded_as_it_was_whatever_the_sizes() -> None:
    pairs = _pair_sizes([(3, 6)])
    torch.manual_seed(0)
    matching = Matching(torch.rand(1, 3, 6), torch.rand(1, 3, 6), torch.rand(1, 3, 3), torch.rand(1, 6, 6))
    options = {"algorithm": "paper", "weight": 0.3}
    found = Matcher(nn.Identity(), DotProduct(), decoding=options)._decode(
        matching, pairs, partial=False, constraint=True
    )
    expected = decode(matching, pairs.mask, **options)
    assert torch.equal(found.assignment, expected.assignment)
    assert torch.equal(found.objective, expected.objective)


def test_batch_mates_of_other_sizes_change_nothing() -> None:
    sizes = [(3, 6), (6, 6), (5, 4), (2, 5)]
    torch.manual_seed(1)
    pairs = _pair_sizes(sizes)
    soft = torch.rand(pairs.mask.shape) * pairs.mask
    matching = Matching(soft, soft, *(torch.rand(len(sizes), nodes, nodes) for nodes in soft.shape[1:]))
    matcher = Matcher(nn.Identity(), DotProduct(), decoding={"weight": 0.3}, threshold=0.3)
    for partial in (False, True):
        together = matcher._decode(matching, pairs, partial=partial, constraint=True)
        for row, (n, m) in enumerate(sizes):
            cut = slice(row, row + 1)
            alone = Matching(
                soft[cut, :n, :m],
                soft[cut, :n, :m],
                matching.structure_source[cut, :n, :n],
                matching.structure_target[cut, :m, :m],
            )
            found = matcher._decode(alone, _pair_sizes([(n, m)]), partial=partial, constraint=True)
            assert torch.equal(found.assignment, together.assignment[cut, :n, :m])
            assert torch.equal(found.objective, together.objective[cut])
