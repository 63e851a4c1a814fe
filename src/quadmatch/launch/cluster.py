"""A Ray cluster to work on: one that is there, or one of this machine alone that ends with this process."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from quadmatch.machine import count_cores

PATIENCE = 5.0
"""Seconds in which a cluster's address must answer."""
LEAST_STORE = 2**28
"""Bytes of the object store beyond the features that are to be kept."""


class ClusterError(OSError):
    """The cluster cannot be reached, or cannot do the work; says which and why."""


@dataclass(frozen=True)
class Cluster:
    """Where to work, and with how many."""

    address: str | None = None
    """As Ray has it: `auto`, `host:port`, `ray://…`; None: Ray is started on this machine."""
    workers: int | None = None
    """Processes; as many as the processors allow if left out."""
    threads: int = 0
    """Of each process; 0: as many as one process would have here."""

    def count_threads(self) -> int:
        """Threads of each process: those of the engine `local`, on which the last digits of results depend."""
        return self.threads or count_cores()


@contextmanager
def join_cluster(cluster: Cluster, memory: int) -> Iterator[int]:
    """Within: Ray is connected; how many workers there are. A connection that this process had before stays."""
    ray, threads = load_ray(), cluster.count_threads()
    joined = ray.is_initialized()
    if not joined:
        _connect(ray, cluster, threads, memory)
    try:
        yield count_workers(ray, cluster, threads)
    finally:
        if not joined:
            ray.shutdown()


def load_ray() -> Any:
    """Ray, or what to install; nothing is told to its makers unless the user wants it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Else it warns of its own next version.
    os.environ.setdefault("RAY_worker_niceness", "0")  # Else a busy machine leaves nothing to the workers.
    try:
        import ray
    except ImportError as error:
        raise ImportError("the engine ray needs Ray: pip install ray") from error
    return ray


def _connect(ray: Any, cluster: Cluster, threads: int, memory: int) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if cluster.address is None:
        count = cluster.workers or max(1, count_processors() // threads)
        options |= {"address": "local", "num_cpus": count * threads, "include_dashboard": False}
        options |= {"object_store_memory": memory + LEAST_STORE}
    else:
        knock(find_address(cluster.address))
        options["address"] = cluster.address
    try:
        ray.init(**options)
    except Exception as error:  # Ray raises nothing narrower where its own processes take too long to start.
        ray.shutdown()
        where = "on this machine" if cluster.address is None else f"at {cluster.address}"
        raise ClusterError(f"cannot use Ray {where}: {shorten(error)}") from None


def count_processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find_address(address: str) -> str:
    """Host and port of a cluster; of `auto`, what RAY_ADDRESS says, else the last one started on this machine."""
    if address == "auto":
        record = Path(tempfile.gettempdir()) / "ray" / "ray_current_cluster"
        address = os.environ.get("RAY_ADDRESS", "") or (record.read_text().strip() if record.is_file() else "")
        if not address:
            raise ClusterError("no Ray cluster is running on this machine: start one (ray start), or name an address")
    return address


def knock(address: str) -> None:
    """Refuse an address that nobody answers at: Ray itself would try for minutes."""
    try:
        parts = urlsplit(address if "://" in address else f"ray://{address}")
        place = parts.hostname, parts.port
    except ValueError:
        place = None, None
    if None in place:
        raise ClusterError(f"a cluster's address is auto, host:port or ray://host:port; got {address!r}")
    try:
        socket.create_connection(place, timeout=PATIENCE).close()
    except OSError as error:
        raise ClusterError(f"no Ray cluster answers at {address} ({error.strerror or error})") from None


def count_workers(ray: Any, cluster: Cluster, threads: int) -> int:
    """How many workers of so many threads there can be, at most as many as are wanted."""
    room = [int(one["Resources"].get("CPU", 0)) // threads for one in ray.nodes() if one["Alive"]]
    if not any(room):
        most = max((int(one["Resources"].get("CPU", 0)) for one in ray.nodes() if one["Alive"]), default=0)
        raise ClusterError(
            f"a worker needs {threads} processors on one machine, and no machine of the cluster offers more than "
            f"{most}: set OMP_NUM_THREADS={max(1, most)}, here and for the engine local if results are compared"
        )
    return min(sum(room), cluster.workers or sum(room))


def shorten(error: BaseException) -> str:
    """What Ray says first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
