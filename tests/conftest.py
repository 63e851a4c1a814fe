"""Shapes are checked in every test: the annotations of the package are enforced on import."""

from jaxtyping import install_import_hook

install_import_hook("quadmatch", "beartype.beartype")

import os  # noqa: E402
import threading  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402
from ray_cluster import SETTINGS  # noqa: E402

os.environ.update(SETTINGS)  # Before anybody imports Ray, which reads them then.
torch.set_num_threads(1)
settings.register_profile("default", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("default")


def pytest_collection_modifyitems(items):
    """What takes Ray a minute is tested when asked for; the rest of Ray, in tests/launch, always."""
    if not os.environ.get("QUADMATCH_RAY_TESTS"):
        reason = "takes Ray a minute: QUADMATCH_RAY_TESTS=1 runs it"
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
