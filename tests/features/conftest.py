"""The small network, its pictures with points, and its maps, which several files read."""

import pytest
from vgg_scene import make_maps, make_scene, make_state


@pytest.fixture(scope="module")
def state():
    return make_state()


@pytest.fixture(scope="module")
def scene():
    return make_scene()


@pytest.fixture(scope="module")
def maps(state, scene):
    return make_maps(state, scene[0])
