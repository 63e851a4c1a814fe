"""Ray for tests, on machines that have much else to do: its settings, and a cluster of two machines, both this one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SETTINGS = {
    # Else a process that has started a Ray of its own asks a cluster without tokens for one, and is taken for dead;
    # and two processes that write the first token at a time have different ones.
    "RAY_AUTH_MODE": "disabled",
    # Else workers are killed for the memory that others take.
    "RAY_memory_monitor_refresh_ms": "0",
    # Seconds until who is slow is taken for dead.
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_health_check_timeout_ms": "60000",
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "300",
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "300",
    # Else a busy machine leaves nothing to the workers.
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
}
"""Variables that Ray reads when it is imported; its processes inherit them."""
STARTS = 3
"""Ray gives its own processes thirty seconds, and no variable gives them more."""
STORE = 80 * 2**20
"""Bytes of a machine's object store; Ray allows no less than 75 MB."""


@contextmanager
def start_nodes() -> Iterator[Any]:
    """A cluster of two machines with a processor each."""
    from ray.cluster_utils import Cluster

    made = Cluster()
    try:
        add_node(made, include_dashboard=False, include_log_monitor=False)
        add_node(made)
        yield made
    finally:
        made.shutdown()


def add_node(cluster: Any, **options: object) -> Any:
    """A machine with one processor more."""
    for left in reversed(range(STARTS)):
        try:
            return cluster.add_node(num_cpus=1, object_store_memory=STORE, **options)
        except Exception as error:  # Ray raises nothing narrower.
            if not left or "timed out" not in str(error):
                raise
    raise AssertionError
