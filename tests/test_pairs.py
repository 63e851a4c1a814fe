import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quadmatch.datasets.annotation import Annotation, frame_points
from quadmatch.datasets.gathering import gather_pairs, tabulate
from quadmatch.datasets.pairs import draw_test_pairs, group_by_category, pairs_hash, sample_batch
from quadmatch.datasets.protocols import OUTLIER, PROTOCOLS, add_outliers
from quadmatch.datasets.triangulation import triangulate_many
from quadmatch.delaunay import CONSTRUCTIONS, delaunay
from quadmatch.matching import Features

VOCABULARY = tuple("abcdefghij")


def make_objects(count=30, kinds=4, least=0, seed=0):
    """Objects with some of ten keypoints each, at places that are all different."""
    numbers = random.Random(seed)
    objects = []
    for place in range(count):
        names = tuple(numbers.sample(VOCABULARY, numbers.randint(least, 10)))
        points = np.array([[numbers.uniform(0, 90), numbers.uniform(0, 70)] for _ in names]).reshape(-1, 2)
        kind = f"kind{place % kinds}"
        objects.append(
            Annotation(f"{kind}/{place:03d}", kind, no_picture, (0.0, 0.0, 90.0, 70.0), names, points)
        )
    return objects


def no_picture():
    raise AssertionError("pairs need no picture")


def shuffled(objects, seed=1):
    again = list(objects)
    random.Random(seed).shuffle(again)
    return again


def count_common(objects, pair):
    return len(set(objects[pair.source].names) & set(objects[pair.target].names))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", [5, 1000, None])
def test_the_list_does_not_depend_on_the_order_of_objects(protocol, count):
    objects = make_objects()
    first = draw_test_pairs(objects, protocol, pairs_per_class=count)
    second = draw_test_pairs(shuffled(objects), protocol, pairs_per_class=count)
    assert [pair[:3] for pair in first] == [pair[:3] for pair in second]
    assert pairs_hash(first) == pairs_hash(second)
    for given_objects, pairs in ((objects, first), (shuffled(objects), second)):
        for pair in pairs:
            assert given_objects[pair.source].name == pair.source_name
            assert given_objects[pair.target].name == pair.target_name
            assert pair.source != pair.target


def test_a_class_does_not_depend_on_other_classes_and_seeds_differ():
    objects = make_objects()
    some = [one for one in objects if one.category == "kind1"]
    all_pairs = draw_test_pairs(objects, pairs_per_class=20)
    assert [pair[:3] for pair in draw_test_pairs(some, pairs_per_class=20)] == [
        pair[:3] for pair in all_pairs if pair.category == "kind1"
    ]
    hashes = {
        pairs_hash(draw_test_pairs(objects, protocol, seed=s)) for protocol in PROTOCOLS for s in (0, 1)
    }
    assert len(hashes) == 6


def test_shorter_lists_begin_longer_ones_and_nothing_repeats_too_early():
    objects = make_objects()
    long = [pair[:3] for pair in draw_test_pairs(objects, pairs_per_class=100) if pair.category == "kind0"]
    short = [pair[:3] for pair in draw_test_pairs(objects, pairs_per_class=10) if pair.category == "kind0"]
    assert long[:10] == short
    valid = len(set(long))
    assert valid < 100  # so that it goes round
    for start in range(0, 100, valid):
        assert len(set(long[start : start + valid])) == len(long[start : start + valid])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_admitted_pair_is_listed_by_brute_force(protocol):
    objects = make_objects()
    exhaustive = {pair[3:] for pair in draw_test_pairs(objects, protocol, pairs_per_class=None)}
    drawn = {pair[3:] for pair in draw_test_pairs(objects, protocol, pairs_per_class=2000)}
    expected = set()
    for i, one in enumerate(objects):
        for j, other in enumerate(objects):
            enough = len(set(one.names) & set(other.names)) >= 3
            some = bool(one.names) and bool(other.names)
            if i != j and one.category == other.category and (some if protocol == "unfiltered" else enough):
                expected.add((i, j))
    assert drawn == expected
    if protocol == "inclusion":
        assert exhaustive == expected
    else:
        assert len(exhaustive) == len(expected) // 2
        assert exhaustive | {(j, i) for i, j in exhaustive} == expected


def test_drawn_pairs_are_uniform():
    objects = make_objects(60, 1, least=5)
    pairs = draw_test_pairs(objects, pairs_per_class=1000)
    sides = np.bincount([pair.source for pair in pairs], minlength=60)
    # 60 sources, about 16.7 each: the chi-square statistic has mean 59 and deviation 11.
    assert ((sides - 1000 / 60) ** 2 / (1000 / 60)).sum() < 59 + 4 * 11


def test_classes_without_a_pair_have_none():
    objects = make_objects(3, 3)
    assert draw_test_pairs(objects) == []
    with pytest.raises(ValueError, match="no two objects"):
        sample_batch(group_by_category(objects), seed=0, step=0)


def test_mistakes_are_named():
    objects = make_objects()
    with pytest.raises(ValueError, match="'kind0/000' twice"):
        draw_test_pairs([*objects, objects[0]])
    with pytest.raises(ValueError, match="protocol must be one of"):
        draw_test_pairs(objects, "all")
    with pytest.raises(ValueError, match="pairs_per_class"):
        draw_test_pairs(objects, pairs_per_class=0)
    groups = group_by_category(objects)
    with pytest.raises(ValueError, match="rank must be"):
        sample_batch(groups, seed=0, step=0, rank=2, world_size=2)
    with pytest.raises(ValueError, match="objects ≥ 2"):
        sample_batch(groups, seed=0, step=0, objects=1)
    with pytest.raises(ValueError, match="at least one pair"):
        gather_pairs(tabulate(objects), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    with pytest.raises(ValueError, match="construction must be one of"):
        gather_pairs(tabulate(objects), np.array([0]), np.array([1]), construction="voronoi")


def name_batch(objects, batch):
    names = [objects[index].name for index in batch.objects]
    return names, batch.pairs.tolist()


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.sampled_from(PROTOCOLS))
def test_a_batch_is_a_pure_function(seed, step, protocol):
    objects, again = make_objects(), shuffled(make_objects())
    options = {"seed": seed, "classes": 3, "objects": 4, "protocol": protocol}
    first = sample_batch(group_by_category(objects), step=step, **options)
    second = sample_batch(group_by_category(again), step=step, **options)
    assert name_batch(objects, first) == name_batch(again, second)
    many = sample_batch(group_by_category(objects), step=step // 3, rank=step % 3, world_size=3, **options)
    assert name_batch(objects, many) == name_batch(objects, first)


def test_a_batch_has_all_pairs_of_a_few_objects_of_several_classes():
    objects = make_objects(60, 5)
    groups = group_by_category(objects)
    seen, sizes = set(), []
    for step in range(200):
        batch = sample_batch(groups, seed=3, step=step, classes=3, objects=4)
        assert len(set(batch.objects.tolist())) == len(batch.objects) == 12
        kinds = [objects[index].category for index in batch.objects]
        assert len(set(kinds)) == 3
        expected = [
            [i, j]
            for i in range(12)
            for j in range(i + 1, 12)
            if kinds[i] == kinds[j]
            and len(set(objects[batch.objects[i]].names) & set(objects[batch.objects[j]].names)) >= 3
        ]
        assert sorted(batch.pairs.tolist()) == expected
        seen |= set(batch.objects.tolist())
        sizes.append(len(expected))
    assert len(seen) == 60
    assert len(set(sizes)) > 3
    few = sample_batch(groups, seed=0, step=0, classes=99, objects=99)
    assert len(few.objects) == 60


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
        left = check_side(
            objects, pair.source, batch.source_nodes[row].numpy(), batch.pairs.source, row, left
        )
        right = check_side(
            objects, pair.target, batch.target_nodes[row].numpy(), batch.pairs.target, row, right
        )
        truth = torch.zeros_like(batch.pairs.truth[row])
        for i, name in enumerate(left):
            for j, other in enumerate(right):
                truth[i, j] = name == other and not name.startswith(OUTLIER)
        assert torch.equal(batch.pairs.truth[row], truth)


def test_outliers_never_admit_a_pair():
    objects = make_objects(least=0)
    names = [pair[:3] for pair in draw_test_pairs(objects)]
    assert [pair[:3] for pair in draw_test_pairs(add_outliers(objects, 9))] == names


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
    objects = make_objects(80, 1, least=8)
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
    features = Features(points, points, points[:, 0])
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


@given(
    st.lists(st.tuples(coordinate, coordinate), max_size=14),
    st.lists(st.booleans(), min_size=14, max_size=14),
)
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
