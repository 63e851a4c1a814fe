"""Ray for tests, on machines that have much else to do: its settings, and a cluster of two machines, both this one."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

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


class Shared:
    """One cluster for all tests of this process that are marked `ray`: they come first, and it ends after them."""

    def __init__(self) -> None:
        self.nodes: Any = None
        self.stack = ExitStack()
        """It ends what uses the cluster too, before it."""
        self.variables: dict[str, str] = {}
        """What workers are told: the folders of tests, and a cache of their own."""

    def start(self) -> Any:
        """The cluster, which the first who asks for it starts: two machines with a processor each."""
        if self.nodes is None:
            from ray.cluster_utils import Cluster

            cache = self.stack.enter_context(TemporaryDirectory(prefix="quadmatch-"))
            self.variables = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "QUADMATCH_CACHE": cache}
            self.nodes = Cluster()
            self.stack.callback(self.nodes.shutdown)
            try:
                self.add(include_dashboard=False, include_log_monitor=False)
                self.add()
            except BaseException:
                self.end()
                raise
        return self.nodes

    def add(self, **options: object) -> None:
        """A machine with one processor more."""
        for left in reversed(range(STARTS)):
            try:
                with patch.dict(os.environ, self.variables):
                    self.nodes.add_node(num_cpus=1, object_store_memory=STORE, **options)
                return
            except Exception as error:  # Ray raises nothing narrower.
                if not left or "timed out" not in str(error):
                    raise

    def end(self) -> None:
        """End the cluster; who asks again gets a new one."""
        self.nodes = None
        self.stack.close()


SHARED = Shared()
