"""Shapes are checked in every test: the annotations of the package are enforced on import."""

from jaxtyping import install_import_hook

install_import_hook("quadmatch", "beartype.beartype")

import os  # noqa: E402
import threading  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

torch.set_num_threads(1)
settings.register_profile("default", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("default")


def pytest_collection_modifyitems(items):
    """Clusters of Ray fail by chance where two are on one machine with two cores: they are tested when asked for."""
    if not os.environ.get("QUADMATCH_RAY_TESTS"):
        reason = "starts clusters of Ray: QUADMATCH_RAY_TESTS=1 runs it"
        for item in items:
            if item.get_closest_marker("ray"):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _end_with_its_threads():
    """What a `match` loads ahead, and says about compiling it, is no part of the next test's output."""
    yield
    for thread in threading.enumerate():
        if thread.name == "load ahead":
            thread.join()
