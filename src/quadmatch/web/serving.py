"""A model, loaded and served on a socket: what `quadmatch serve` and each of its workers do."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from quadmatch.models.load import load, read_aliases
from quadmatch.own_images.warm_up import warm_up
from quadmatch.web.app import build_app
from quadmatch.web.connections import configure


def load_app(model: str, host: str) -> FastAPI:
    """The application for a model by its name, its file or a run folder, ready to answer."""
    matcher = load(model)
    warm_up(matcher)
    return build_app(matcher, model=read_aliases().get(model, model), host=host, load=load)


def serve_model(model: str, host: str, listener: socket.socket, ready: Callable[[], object]) -> None:
    """Serve a model until this process is asked to end; `ready` is called once it is loaded."""
    app = load_app(model, host)
    ready()
    with suppress(KeyboardInterrupt):
        uvicorn.Server(configure(app)).run(sockets=[listener])
