"""A server on Ray Serve for the tests of the page."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from web_server import build_quick_app

SETTINGS = {
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "300",
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "300",
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""For machines that have much else to do: Ray gives its proxy five seconds, at the lowest priority."""


@contextmanager
def start_ray() -> Iterator[str]:
    """The address of a Ray Serve application of two workers with the quick model, on a Ray of its own."""
    # Before Ray is imported, which reads them; its workers must find this folder too.
    os.environ.update(SETTINGS, PYTHONPATH=os.pathsep.join(sys.path))
    import ray
    from ray import serve

    from quadmatch.launch.serve import deploy

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(deploy(build_quick_app, 2))
        yield f"http://127.0.0.1:{port}"
    finally:
        serve.shutdown()
        ray.shutdown()
