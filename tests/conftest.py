"""Shapes are checked in every test: the annotations of the package are enforced on import."""

from jaxtyping import install_import_hook

install_import_hook("quadmatch", "beartype.beartype")

import os  # noqa: E402
import threading  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402
from ray_cluster import SETTINGS, SHARED  # noqa: E402

os.environ.update(SETTINGS)  # Before anybody imports Ray, which reads them then.
torch.set_num_threads(1)
settings.register_profile("default", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("default")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Tests that share a cluster of Ray come first: where processes share the tests, the first one takes them all."""
    items.sort(key=lambda item: item.get_closest_marker("ray") is None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if not item.get_closest_marker("ray"):
        SHARED.end()


def pytest_sessionfinish():
    SHARED.end()


@pytest.fixture
def nodes():
    """A cluster of Ray, of two machines with a processor each; its tests are marked `ray`."""
    return SHARED.start()


@pytest.fixture(autouse=True)
def _end_with_its_threads():
    """What a `match` loads ahead, and says about compiling it, is no part of the next test's output."""
    yield
    for thread in threading.enumerate():
        if thread.name == "load ahead":
            thread.join()
