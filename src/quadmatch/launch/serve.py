"""The server of the page as an application of Ray Serve, on one machine or on a cluster.

`serve run quadmatch.launch.serve:application model=default workers=2`
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import FastAPI

DEFAULTS = {"model": "default", "host": "127.0.0.1", "workers": "1"}
"""What can be said about the application; `host` is the name or address under which clients reach it."""


def application(options: dict[str, str]) -> Any:
    """The application for a model, as `serve run` and Serve's files of settings ask for it."""
    if unknown := sorted(set(options) - set(DEFAULTS)):
        raise ValueError(f"no option {', '.join(unknown)}; there are {', '.join(DEFAULTS)}")
    chosen = DEFAULTS | options
    workers = str(chosen["workers"])
    if not (workers.isdecimal() and int(workers) > 0):
        raise ValueError(f"workers={workers}: must be a whole number above 0")
    return deploy(partial(_load, chosen["model"], chosen["host"]), int(workers))


def deploy(make: Callable[[], FastAPI], workers: int = 1) -> Any:
    """An application whose workers each call `make`, and answer with what it makes, limits and queue included."""
    try:
        from ray import serve
    except ImportError as error:
        raise ImportError(f"Ray Serve needs {error.name}: pip install 'ray[serve]' fastapi python-multipart") from None

    # More requests than a worker may have in hand: it is the worker that says when to come back.
    made = serve.deployment(
        serve.ingress(lambda: make())(),  # A plain function: Serve takes anything else for the application itself.
        name="quadmatch",
        num_replicas=workers,
        max_ongoing_requests=200,
        ray_actor_options={"num_cpus": 1},
        graceful_shutdown_timeout_s=10,
    )
    return made.bind()


def _load(model: str, host: str) -> FastAPI:
    from quadmatch.machine import keep_pages
    from quadmatch.web.serving import load_app

    keep_pages()
    return load_app(model, host)
