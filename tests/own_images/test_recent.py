"""Features found again: by equal content alone, within their bounds, and the same as those computed anew."""

import gc

import numpy as np
import pytest
from web_server import PICTURE, build_quick_matcher

from quadmatch.datasets.picture import make_picture
from quadmatch.own_images.kept import read_condensed
from quadmatch.own_images.recent import Recent, digest

POINTS = [[5.0, 6.0], [50.0, 9.5], [30.0, 40.0], [12.0, 33.0]]
MOVED = [[5.0, 6.5], *POINTS[1:]]


@pytest.fixture
def matcher():
    return build_quick_matcher()


def test_what_was_seen_is_not_convolved_again(matcher, monkeypatch) -> None:
    recent, runs, run = Recent(), [], matcher.features.trunk.run
    monkeypatch.setattr(matcher.features.trunk, "run", lambda *given: runs.append(len(given[0])) or run(*given))
    pair = [make_picture(PICTURE, POINTS), make_picture(PICTURE[:, ::-1], POINTS[::-1])]
    expected = matcher.match_ways(matcher.prepare(pair), [0], [1])
    for turn in range(3):
        copies = [make_picture(one.image.copy(), one.keypoints.points.copy(), name=f"{turn}") for one in pair]
        found = matcher.match_ways(recent.prepare(matcher, copies), [0], [1], read=read_condensed)
        for one, other in zip(expected, found):
            assert np.array_equal(one[0].pairs, other[0].pairs)
            assert np.allclose(one[0].assignment, other[0].assignment, atol=1e-6)
    assert runs == [2, 2]  # Once without, and once for all three turns.
    assert (recent.made, recent.found) == (2, 4)


def test_only_equal_content_is_found(matcher) -> None:
    other = PICTURE.copy()
    other[0, 0, 0] ^= 1
    turned = np.ascontiguousarray(PICTURE.transpose(1, 0, 2))
    different = [
        make_picture(PICTURE, POINTS),
        make_picture(other, POINTS),
        make_picture(turned.reshape(PICTURE.shape), POINTS),
        make_picture(turned, POINTS),
        make_picture(PICTURE, MOVED),
        make_picture(PICTURE, POINTS[::-1]),
        make_picture(PICTURE, POINTS[:3]),
        make_picture(PICTURE, POINTS, (0, 0, 60, 48)),
        make_picture(PICTURE, POINTS, (0, 0, 60, 47)),
        make_picture(PICTURE, []),
    ]
    assert len({digest(one) for one in different}) == len(different)
    recent = Recent()
    recent.prepare(matcher, different[:3])
    recent.prepare(matcher, different[3:5])
    assert (recent.made, recent.found) == (5, 0)


def test_memory_is_bounded_and_the_oldest_goes(matcher) -> None:
    pictures = [make_picture(PICTURE + number, POINTS) for number in range(4)]
    size = Recent().prepare(matcher, pictures[:1])[0].nbytes
    recent = Recent(2 * size)
    for number in (0, 1, 0, 2, 0, 1):
        recent.prepare(matcher, [pictures[number]])
        assert recent.held <= 2 * size
    assert (recent.made, recent.found) == (4, 2)  # 1 made room for 2, and then was made again.
    assert len(recent.prepare(matcher, pictures)) == 4  # More than fit are all given.
    nothing = Recent(0)
    for _ in range(2):
        nothing.prepare(matcher, pictures[:1] * 2)
    assert (nothing.made, nothing.held) == (2, 0)


def test_models_do_not_share_features(matcher) -> None:
    recent, picture = Recent(), make_picture(PICTURE, POINTS)
    recent.prepare(matcher, [picture])
    for _ in range(3):  # A dropped model's address may be another's.
        other = build_quick_matcher()
        recent.prepare(other, [picture])
        del other
        gc.collect()
    assert (recent.made, recent.found) == (4, 0)
    recent.prepare(matcher, [picture])
    assert recent.found == 1
