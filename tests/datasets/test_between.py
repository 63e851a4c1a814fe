from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from made_objects import make_objects

from quadmatch.datasets.annotation import frame_points
from quadmatch.datasets.between import NEAREST, add_between, find_neighbours
from quadmatch.datasets.gathering import ABSENT, ALONE, gather_pairs, tabulate
from quadmatch.datasets.mirroring import add_mirrored, swap_sides
from quadmatch.datasets.pairs import draw_test_pairs, group_by_category
from quadmatch.datasets.protocols import ADDED, BETWEEN, add_outliers


def test_points_lie_half_way_and_come_after_the_keypoints() -> None:
    objects = make_objects()
    added = 0
    for plain, full in zip(objects, add_between(objects)):
        known = len(plain.names)
        assert full.names[:known] == plain.names
        np.testing.assert_array_equal(full.points[:known], plain.points)
        place = dict(zip(plain.names, plain.points))
        for name, point in zip(full.names[known:], full.points[known:]):
            first, second = name.removeprefix(BETWEEN).split("/")
            np.testing.assert_allclose(point, (place[first] + place[second]) / 2)
            added += 1
    assert added


def test_neighbours_are_the_nearest_on_average() -> None:
    objects = make_objects()
    for category, chosen in find_neighbours(objects).items():
        places = [dict(zip(one.names, frame_points(one))) for one in objects if one.category == category]
        pairs = {pair for one in places for pair in combinations(sorted(one), 2)}
        apart = {(a, b): np.mean([np.hypot(*(p[a] - p[b])) for p in places if {a, b} <= p.keys()]) for a, b in pairs}
        for pair in pairs:
            nearer = [sum(name in other and apart[other] < apart[pair] for other in pairs) for name in pair]
            assert (pair in chosen) == (min(nearer) < NEAREST)


def test_an_object_of_one_keypoint_stays_as_it_is() -> None:
    objects = [replace(one, names=one.names[:1], points=one.points[:1]) for one in make_objects()]
    for plain, full in zip(objects, add_between(objects)):
        assert full.names == plain.names
        np.testing.assert_array_equal(full.points, plain.points)


def test_in_a_mirror_left_and_right_are_exchanged_between_points_too() -> None:
    sided = [replace(one, names=tuple(f"{'LR'[k % 2]}_{k // 2}" for k, _ in enumerate(one.names)))
             for one in make_objects()]  # fmt: skip
    full = add_between(add_mirrored(sided))
    for one, mirrored in zip(full, full[len(sided) :]):
        expected = {"/".join([BETWEEN[:-1], *sorted(swap_sides(n) for n in name.removeprefix(BETWEEN).split("/"))])
                    for name in one.names if name.startswith(BETWEEN)}  # fmt: skip
        assert {name for name in mirrored.names if name.startswith(BETWEEN)} == expected


def test_added_points_do_not_make_a_pair() -> None:
    objects = make_objects()
    full = add_between(add_outliers(objects, 2))
    for plain, group in zip(group_by_category(objects), group_by_category(full)):
        np.testing.assert_array_equal(plain.present, group.present)
    assert draw_test_pairs(full, pairs_per_class=9) == draw_test_pairs(objects, pairs_per_class=9)


def test_a_step_has_the_same_of_them_in_all_objects() -> None:
    objects = add_between(add_outliers(make_objects(), 4, "uniform"))
    table, rows = tabulate(objects), np.arange(len(objects))
    names = [one.names for one in objects]
    drawn = []
    for seed in range(12):
        chosen = table.select(rows, 2, seed, between=0.5)
        kept = [
            {name for name, number in zip(own, line) if number != ABSENT} for own, line in zip(names, chosen.identity)
        ]
        everywhere = set().union(*kept)
        for own, left in zip(names, kept):
            own_keypoints = {name for name in own if not name.startswith(ADDED)}
            assert left >= own_keypoints
            assert {n for n in own if n.startswith(BETWEEN)} & everywhere <= left
        assert ((chosen.identity == ALONE).sum(1) == 2).all()
        drawn.append(frozenset(name for name in everywhere if name.startswith(BETWEEN)))
    assert len(set(drawn)) > 6
    assert not table.select(rows, 0, 0).identity[table.between].max() >= 0
    assert (table.select(rows, 4, 0, between=1.0).identity == table.identity).all()


@pytest.mark.parametrize("protocol", ["intersection", "unfiltered"])
def test_points_of_one_name_are_partners(protocol) -> None:
    objects = add_between(make_objects())
    pairs = draw_test_pairs(objects, protocol, pairs_per_class=4)
    source, target = (np.array([pair[place] for pair in pairs]) for place in (3, 4))
    batch = gather_pairs(tabulate(objects), source, target, protocol)
    found = 0
    for row, pair in enumerate(pairs):
        left = [objects[pair.source].names[node] for node in batch.source_nodes[row].tolist() if node >= 0]
        right = [objects[pair.target].names[node] for node in batch.target_nodes[row].tolist() if node >= 0]
        truth = batch.pairs.truth[row, : len(left), : len(right)].numpy()
        np.testing.assert_array_equal(truth, np.array(left)[:, None] == np.array(right))
        found += sum(name.startswith(BETWEEN) for name in set(left) & set(right))
    assert found
