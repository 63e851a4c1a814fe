import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_objects import make_objects, shuffled

from quadmatch.datasets.pairs import add_strangers, draw_test_pairs, group_by_category, pairs_hash, sample_batch
from quadmatch.datasets.protocols import PROTOCOLS, add_outliers


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
    hashes = {pairs_hash(draw_test_pairs(objects, protocol, seed=s)) for protocol in PROTOCOLS for s in (0, 1)}
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
    with pytest.raises(ValueError, match="objects ≥ 2"):
        sample_batch(groups, seed=0, step=0, objects=1)


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


def test_outliers_never_admit_a_pair():
    objects = make_objects(least=0)
    names = [pair[:3] for pair in draw_test_pairs(objects)]
    assert [pair[:3] for pair in draw_test_pairs(add_outliers(objects, 9))] == names


def test_strangers_are_of_different_categories_and_a_function_of_the_step():
    objects = make_objects()
    groups = group_by_category(objects)
    batch = sample_batch(groups, seed=0, step=3, classes=2, objects=3)
    more = [add_strangers(batch, groups, seed=0, step=step, count=4) for step in (3, 3, 4)]
    assert np.array_equal(more[0].pairs, more[1].pairs)
    assert not np.array_equal(more[0].pairs, more[2].pairs)
    assert np.array_equal(more[0].pairs[: len(batch.pairs)], batch.pairs)
    added = more[0].pairs[len(batch.pairs) :]
    assert len(added) == 4
    for pair in added:
        first, second = (objects[batch.objects[place]].category for place in pair)
        assert first != second
