"""Processes on a Ray cluster that do one job at a time; who dies is replaced, and its job is done again."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from quadmatch.features.precision import VARIABLE
from quadmatch.launch.cluster import ClusterError, load_ray, shorten
from quadmatch.machine import keep_pages

ATTEMPTS = 4
"""Workers that a job may kill, and workers in a row that may die before they have done anything."""


class Worker:
    """What runs in a process of the cluster: something that is made once, and calls of its methods."""

    def __init__(self, threads: int) -> None:
        import torch

        keep_pages()
        torch.set_num_threads(threads)
        self.made: Any = None

    def start(self, make: Callable[..., Any], *arguments: Any) -> tuple[None, Any]:
        """Make what the jobs need; as its result, what `describe` says of it."""
        self.made = make(*arguments)
        return None, self.made.describe()

    def call(self, method: str, *arguments: Any) -> tuple[Any, Any]:
        """A method's two results: a large one, which stays in the object store, and a small one for the driver."""
        large, small = getattr(self.made, method)(*arguments)
        return large, small


@dataclass(frozen=True)
class Job:
    """A call of a worker's method."""

    key: Hashable
    name: str
    """What a message calls it."""
    method: str
    arguments: tuple[Any, ...]
    attempts: int = 0
    """How often a worker was lost with it."""


@dataclass(frozen=True)
class Done:
    """What came of a job."""

    key: Hashable
    large: Any = None
    """A reference into the object store."""
    small: Any = None
    lost: bool = False
    """An argument is no more in the object store: make it and give the job again."""


class Workers:
    """Some workers, all started alike: `make(*arguments)` is what their jobs are calls of."""

    def __init__(self, count: int, threads: int, make: Callable[..., Any], *arguments: Any) -> None:
        self.ray, self.count, self.threads, self.recipe = load_ray(), count, threads, (make, *arguments)
        # Of this process's variables, one that results depend on; no other, as Ray shows them to whoever asks.
        variables = {name: os.environ[name] for name in (VARIABLE,) if name in os.environ}
        environment = {"env_vars": variables} if variables else None
        self.actor = self.ray.remote(Worker).options(num_cpus=threads, runtime_env=environment)
        self.idle: list[Any] = []
        self.busy: dict[Any, tuple[Any, Any, Job | None]] = {}
        """By the reference of the small result: the worker, the large one's reference, and the job, if it is one."""
        self.waiting: list[Job] = []
        """Jobs of workers that were lost."""
        self.failures, self.lost = 0, 0

    def start(self) -> Any:
        """Start the first worker; what it says of itself when it is ready."""
        self._add()
        while (done := self._collect()).small is None:
            pass
        return done.small

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        """End all workers."""
        for worker in (*self.idle, *(worker for worker, _, _ in self.busy.values())):
            with suppress(self.ray.exceptions.RayError):  # The whole cluster may be gone.
                self.ray.kill(worker)

    def fill(self) -> None:
        """Start the others; they are given jobs when they are ready."""
        while len(self.idle) + len(self.busy) < self.count:
            self._add()

    def give(self, job: Job) -> None:
        """Let an idle worker do a job."""
        worker = self.idle.pop()
        large, small = worker.call.options(num_returns=2).remote(job.method, *job.arguments)
        self.busy[small] = worker, large, job

    def wait(self) -> Done | None:
        """The next job that is done; None if one was lost or a worker got ready, so that there may be more to give."""
        done = self._collect()
        while self.waiting and self.idle:
            self.give(self.waiting.pop())
        return done if done.key is not None else None

    def _add(self) -> None:
        worker = self.actor.remote(self.threads)
        large, small = worker.start.options(num_returns=2).remote(*self.recipe)
        self.busy[small] = worker, large, None

    def _collect(self) -> Done:
        """Wait for one of the busy workers, and take what it has done from it."""
        small = self._wait_for_one()
        worker, large, job = self.busy.pop(small)
        errors = self.ray.exceptions
        key = job.key if job else None
        try:
            result = self.ray.get(small)
        except (errors.RayActorError, errors.OutOfMemoryError, errors.NodeDiedError) as error:
            self.ray.kill(worker)  # Who does not answer may still be there.
            return self._replace(job, error)
        except errors.ObjectLostError:
            self.idle.append(worker)
            return Done(key, lost=True)
        except errors.RayTaskError as error:
            raise _unwrap(error) from None
        self.idle.append(worker)
        self.failures = 0
        return Done(key, large, result)

    def _wait_for_one(self) -> Any:
        """The reference of a small result that is there; who can never start is not waited for."""
        while True:
            ready, _ = self.ray.wait(list(self.busy), num_returns=1, timeout=5)
            if ready:
                return ready[0]
            working = any(job is not None for _, _, job in self.busy.values())
            if not working and not self._has_room():
                raise ClusterError(f"no machine of the cluster is left that has {self.threads} processors")

    def _has_room(self) -> bool:
        alive = [one["Resources"] for one in self.ray.nodes() if one["Alive"]]
        return any(one.get("CPU", 0) >= self.threads for one in alive)

    def _replace(self, job: Job | None, error: Exception) -> Done:
        """A new worker in place of one that died; its job is done again, unless that has cost too many."""
        self.lost += 1
        if job is None:
            self.failures += 1
            if self.failures >= ATTEMPTS:
                raise ClusterError(f"{ATTEMPTS} workers in a row died before they did anything: {shorten(error)}")
        elif job.attempts + 1 >= ATTEMPTS:
            raise ClusterError(f"{ATTEMPTS} workers died of {job.name}: {shorten(error)}")
        else:
            self.waiting.append(replace(job, attempts=job.attempts + 1))
        self._add()
        return Done(None)


def _unwrap(error: Any) -> Exception:
    """What a worker raised, as if it had been raised here; without a cause, Ray's own error."""
    cause = error.cause
    return cause if isinstance(cause, Exception) else ClusterError(shorten(error))
