"""The application of Ray Serve: its options. What it answers is tested with the other servers, in tests/web."""

import pytest

from quadmatch.launch.serve import application


def test_options_are_checked_before_anything_is_started() -> None:
    with pytest.raises(ValueError, match="no option modle; there are model, host, workers"):
        application({"modle": "default"})
    for bad in ("0", "-1", "many", "1.5"):
        with pytest.raises(ValueError, match="workers"):
            application({"workers": bad})
