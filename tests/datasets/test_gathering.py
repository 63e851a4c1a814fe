import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from made_objects import make_objects, shuffled, sort_keypoints
from random_pairs import make_features

from quadmatch.datasets.annotation import frame_points
from quadmatch.datasets.gathering import ALONE, gather_pairs, tabulate
from quadmatch.datasets.pairs import draw_test_pairs
from quadmatch.datasets.protocols import OUTLIER, PROTOCOLS, add_outliers
from quadmatch.datasets.triangulation import triangulate_many
from quadmatch.delaunay import CONSTRUCTIONS, delaunay


def check_side(objects, index, nodes, graph, row, expected_names):
    names = [objects[index].names[node] for node in nodes if node >= 0]
    assert sorted(names) == sorted(expected_names)
    size = len(names)
    assert graph.mask[row].tolist() == [place < size for place in range(graph.mask.shape[1])]
    points = frame_points(objects[index])[nodes[:size]]
    np.testing.assert_allclose(graph.points[row, :size].numpy(), points, rtol=1e-6)
    expected = torch.zeros(graph.adjacency[row].shape)
    expected[:size, :size] = delaunay(graph.points[row, :size])
    assert torch.equal(graph.adjacency[row], expected)
    assert not graph.points[row, size:].any()
    return names


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("outliers", [0, 3])
def test_gathered_graphs_by_brute_force(protocol, outliers):
    objects = add_outliers(make_objects(), outliers)
    pairs = draw_test_pairs(objects, protocol, pairs_per_class=10)
    source, target = (np.array([pair[place] for pair in pairs]) for place in (3, 4))
    batch = gather_pairs(tabulate(objects), source, target, protocol)
    assert batch.source.tolist() == source.tolist()
    for row, pair in enumerate(pairs):
        first, second = objects[pair.source].names, objects[pair.target].names
        common = (set(first) & set(second)) - {f"{OUTLIER}{n}" for n in range(outliers)}
        extra = {f"{OUTLIER}{n}" for n in range(outliers)}
        left = first if protocol == "unfiltered" else common | extra
        right = common | extra if protocol == "intersection" else second
        left = check_side(objects, pair.source, batch.source_nodes[row].numpy(), batch.pairs.source, row, left)
        right = check_side(objects, pair.target, batch.target_nodes[row].numpy(), batch.pairs.target, row, right)
        truth = torch.zeros_like(batch.pairs.truth[row])
        for i, name in enumerate(left):
            for j, other in enumerate(right):
                truth[i, j] = name == other and not name.startswith(OUTLIER)
        assert torch.equal(batch.pairs.truth[row], truth)
    check_names(objects, batch)


def check_names(objects, batch):
    """Equal numbers are equal names of one category, over all pairs; points that match nothing have none."""
    seen = {}
    sides = (batch.source, batch.source_nodes), (batch.target, batch.target_nodes)
    for (indices, nodes), numbers in zip(sides, batch.pairs.names):
        for index, row, found in zip(indices.tolist(), nodes.tolist(), numbers.tolist()):
            for node, number in zip(row, found):
                name = objects[index].names[node] if node >= 0 else OUTLIER
                assert (number < 0) == name.startswith(OUTLIER)
                if number >= 0:
                    assert seen.setdefault((objects[index].category, name), number) == number
    assert len(set(seen.values())) == len(seen)


def test_a_gathered_pair_depends_on_the_pair_alone():
    objects, again = make_objects(), shuffled(make_objects())
    pairs = draw_test_pairs(objects, pairs_per_class=8)
    source, target = (np.array([pair[place] for pair in pairs]) for place in (3, 4))
    whole = gather_pairs(tabulate(objects), source, target)
    places = {one.name: place for place, one in enumerate(again)}
    for row, pair in enumerate(pairs):
        where = [np.array([places[name]]) for name in pair[1:3]]
        alone = gather_pairs(tabulate(again), *where)
        rows, columns = alone.source_nodes.shape[1], alone.target_nodes.shape[1]
        assert whole.source_nodes[row, :rows].tolist() == alone.source_nodes[0].tolist()
        assert whole.target_nodes[row, :columns].tolist() == alone.target_nodes[0].tolist()
        assert torch.equal(whole.pairs.source.adjacency[row, :rows, :rows], alone.pairs.source.adjacency[0])
        assert torch.equal(whole.pairs.truth[row, :rows, :columns], alone.pairs.truth[0])


def test_the_order_of_nodes_says_nothing_of_the_truth():
    # Keypoints in one order in every object, as Willow has them: unshuffled, every true match is on the diagonal.
    objects = [sort_keypoints(one) for one in make_objects(80, 1, least=8)]
    pairs = draw_test_pairs(objects, pairs_per_class=1000)
    source, target = (np.array([pair[place] for pair in pairs]) for place in (3, 4))
    batch = gather_pairs(tabulate(objects), source, target)
    diagonal = batch.pairs.truth.diagonal(dim1=1, dim2=2).sum().item()
    # Right matches on the diagonal by chance: one a pair on average, with deviation one.
    assert abs(diagonal - 1000) < 4 * 1000**0.5


def test_nodes_select_the_features_of_their_keypoints():
    objects = make_objects(10, 1, least=3)
    table = tabulate(objects)
    pairs = draw_test_pairs(objects, pairs_per_class=6)
    source, target = (np.array([pair[place] for pair in pairs]) for place in (3, 4))
    batch = gather_pairs(table, source, target, "inclusion")
    points = torch.from_numpy(table.points)
    features = make_features(points, points, points[:, 0])
    picked = features.select(batch.target, batch.target_nodes)
    assert torch.equal(picked.local, batch.pairs.target.points)


@pytest.mark.parametrize("construction", list(CONSTRUCTIONS))
def test_constructions(construction):
    objects = make_objects(10, 1, least=8)
    batch = gather_pairs(tabulate(objects), np.array([0]), np.array([1]), construction=construction)
    expected = CONSTRUCTIONS[construction](batch.pairs.source.points[0])
    assert torch.equal(batch.pairs.source.adjacency[0], expected)


def test_outliers():
    objects = make_objects(40)
    for kind in ("normal", "uniform"):
        first, second = add_outliers(objects, 50, kind), add_outliers(shuffled(objects), 50, kind)
        by_name = {one.name: one for one in second}
        for one, before in zip(first, objects):
            assert one.names[: len(before.names)] == before.names
            assert len(one.names) == len(before.names) + 50
            np.testing.assert_array_equal(one.points, by_name[one.name].points)
        framed = np.concatenate([frame_points(one)[-50:] for one in first])
        if kind == "normal":
            np.testing.assert_allclose(framed.mean(0), 0, atol=1)
            np.testing.assert_allclose(framed.std(0), 10, atol=0.7)
        else:
            assert ((framed >= 0) & (framed <= 256)).all()
            np.testing.assert_allclose(framed.mean(0), 128, atol=8)
            np.testing.assert_allclose(framed.std(0), 256 / 12**0.5, atol=5)
    other = add_outliers(objects, 2, seed=1)[0]
    assert (other.points[-2:] != add_outliers(objects, 2)[0].points[-2:]).all()
    with pytest.raises(ValueError, match="kind of outliers"):
        add_outliers(objects, 2, "cauchy")
    with pytest.raises(ValueError, match="must not be negative"):
        add_outliers(objects, -1)


coordinate = st.one_of(st.floats(-500, 500, width=32), st.integers(-3, 3).map(float))


@given(st.lists(st.tuples(coordinate, coordinate), max_size=14), st.lists(st.booleans(), min_size=14, max_size=14))
def test_many_triangulations_are_each_ones(points, mask):
    array = np.array(points, dtype=np.float32).reshape(1, -1, 2)
    taken = np.array([mask[: len(points)]], dtype=bool)
    joined = triangulate_many(array, taken)[0]
    nodes = np.flatnonzero(taken[0])
    expected = np.zeros_like(joined)
    expected[np.ix_(nodes, nodes)] = delaunay(torch.from_numpy(array[0, nodes])).numpy()
    np.testing.assert_array_equal(joined, expected)


def test_many_random_triangulations():
    numbers = np.random.default_rng(0)
    points = numbers.uniform(0, 256, (200, 19, 2)).astype(np.float32)
    mask = numbers.random((200, 19)) < 0.7
    joined = triangulate_many(points, mask)
    for one, taken, found in zip(points, mask, joined):
        expected = delaunay(torch.from_numpy(one[taken])).numpy()
        np.testing.assert_array_equal(found[np.ix_(taken, taken)], expected)
        assert found.sum() == expected.sum()


def test_mistakes_are_named():
    objects = make_objects()
    with pytest.raises(ValueError, match="at least one pair"):
        gather_pairs(tabulate(objects), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    with pytest.raises(ValueError, match="construction must be one of"):
        gather_pairs(tabulate(objects), np.array([0]), np.array([1]), construction="voronoi")


def test_which_outliers_a_table_keeps_depends_on_the_seed_and_the_object_alone():
    table = tabulate(add_outliers(make_objects(), 9, "uniform"))
    objects = np.arange(len(table.hashes))
    picks = [table.select(objects, 3, seed).identity == ALONE for seed in range(40)]
    for pick in picks:
        assert (pick.sum(1) == 3).all()
    assert (np.sum(picks, 0)[table.identity == ALONE] > 0).all()  # Each of the nine is drawn now and then.
    assert len({pick.tobytes() for pick in picks}) > 30
    backwards = table.select(objects[::-1].copy(), 3, 7)
    assert (backwards.identity[::-1] == table.select(objects, 3, 7).identity).all()
    kept = table.select(objects, 20, 7)
    assert (kept.identity == table.identity).all()  # There are no more than nine.
    assert not (table.select(objects, 0, 7).identity == ALONE).any()


def test_outliers_lie_in_the_usual_frame_unless_told_otherwise():
    usual, given, other = (
        [one.points.tolist() for one in add_outliers(make_objects(), 2, **options)]
        for options in ({}, {"size": 256}, {"size": 512})
    )
    assert usual == given != other
