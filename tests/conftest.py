"""Shapes are checked in every test: the annotations of the package are enforced on import."""

from jaxtyping import install_import_hook

install_import_hook("quadmatch", "beartype.beartype")

import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

torch.set_num_threads(1)
settings.register_profile("default", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("default")
