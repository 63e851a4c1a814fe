"""Shapes are checked in every test: the annotations of the package are enforced on import."""

from jaxtyping import install_import_hook

install_import_hook("quadmatch", "beartype.beartype")

import threading  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

torch.set_num_threads(1)
settings.register_profile("default", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("default")


@pytest.fixture(autouse=True)
def _end_with_its_threads():
    """What a `match` loads ahead, and says about compiling it, is no part of the next test's output."""
    yield
    for thread in threading.enumerate():
        if thread.name == "load ahead":
            thread.join()
