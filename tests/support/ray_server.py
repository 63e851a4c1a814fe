"""A server on Ray Serve for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ray_cluster import find_free_ports
from web_server import build_quick_app


@contextmanager
def start_ray(address: str) -> Iterator[str]:
    """The address of a Ray Serve application of two workers with the quick model, on the cluster at `address`."""
    import ray
    from ray import serve

    from quadmatch.launch.serve import deploy

    (port,) = find_free_ports(1)
    ray.init(address=address, log_to_driver=False, configure_logging=False)
    try:
        # One door for both machines: they are this one, and a port is there once.
        serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
        serve.run(deploy(build_quick_app, 2))
        yield f"http://127.0.0.1:{port}"
    finally:
        serve.shutdown()
        ray.shutdown()
