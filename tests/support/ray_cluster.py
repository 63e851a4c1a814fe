"""Ray for tests, on machines that have much else to do: its settings, and a cluster of two machines, both this one."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
PORTS = "metrics_agent_port", "metrics_export_port", "runtime_env_agent_port", "dashboard_agent_listen_port"
"""Of a machine's helpers. Ray tells the machine all of them but the last, for which it reads a file."""
PATIENCE = 300
"""Seconds until a machine of a cluster must have appeared."""
STORE = 80 * 2**20
"""Bytes of a machine's object store; Ray allows no less than 75 MB."""


@contextmanager
def be_patient() -> Iterator[None]:
    """Within, a Ray that is started here gets the time it needs: Ray gives it seconds, and no variable gives it more.

    A machine's helpers have fifteen seconds to write down which ports they took, else the machine ends itself. Ports
    that are chosen and written down before are not waited for. The machine has thirty seconds to appear.
    """
    from ray._private import services
    from ray._private.node import Node
    from ray._raylet import DASHBOARD_AGENT_LISTEN_PORT_NAME, persist_port

    start, find = Node.start_raylet, services.get_node

    def start_with_ports(node: Any, *arguments: Any) -> None:
        ports = find_free_ports(len(PORTS))
        for name, port in zip(PORTS, ports, strict=True):
            setattr(node._ray_params, name, port)
        persist_port(node._session_dir, node._node_id, DASHBOARD_AGENT_LISTEN_PORT_NAME, ports[-1])
        start(node, *arguments)

    def await_machine(address: str, name: str) -> Any:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                return find(address, name)
            except RuntimeError:  # It is not there yet.
                time.sleep(0.2)
        return find(address, name)

    with patch.object(Node, "start_raylet", start_with_ports), patch.object(services, "get_node", await_machine):
        yield


def find_free_ports(count: int) -> list[int]:
    """Different ports that nobody has."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("", 0))
        return [one.getsockname()[1] for one in held]


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
                self.add(include_dashboard=False, include_log_monitor=False, no_monitor=True)
                self.add()
            except BaseException:
                self.end()
                raise
        return self.nodes

    def add(self, **options: object) -> None:
        """A machine with one processor more."""
        with patch.dict(os.environ, self.variables), be_patient():
            self.nodes.add_node(num_cpus=1, object_store_memory=STORE, **options)

    def end(self) -> None:
        """End the cluster; who asks again gets a new one."""
        self.nodes = None
        self.stack.close()


SHARED = Shared()
