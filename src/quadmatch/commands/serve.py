"""`quadmatch serve`: the page on localhost."""

from __future__ import annotations

import os
import socket
from functools import partial
from typing import Annotated

import typer

from quadmatch.machine import count_cores

INSTALL = "pip install fastapi python-multipart uvicorn opencv-python-headless scikit-image"
"""What the page needs beside the package."""


def serve(
    model: Annotated[str, typer.Option(help="A model's name, its file, or a run folder.")] = "default",
    host: Annotated[str, typer.Option(help="Where to listen; others can reach it unless it is loopback.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8420,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    workers: Annotated[int, typer.Option(min=1, help="Processes that answer, each with its model and its queue.")] = 1,
) -> None:
    """Open a page in the browser on which two pictures are matched; nothing leaves this machine."""
    if workers > 1:  # Before torch is imported, which reads it.
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, count_cores() // workers)))
    try:
        from quadmatch.web.serving import serve_model
        from quadmatch.web.workers import run_workers
    except ImportError as error:
        raise ImportError(f"the page needs {error.name}: {INSTALL}") from None
    from quadmatch.web.guard import is_loopback

    with bind(host, port) as listener:
        typer.echo(f"loading the model {model} …")

        def announce() -> None:
            shown = f"[{host}]" if ":" in host else host
            address = f"http://{shown}:{listener.getsockname()[1]}/"
            typer.echo(f"{address}  (Ctrl+C ends it)")
            if not is_loopback(host):
                typer.echo("note: other machines can reach this page, and there is no password", err=True)
            if open_page:
                typer.launch(address)

        if workers == 1:
            serve_model(model, host, listener, announce)
        else:
            own = partial(serve_model, model, host)
            run_workers(workers, own, listener, ready=announce, say=partial(typer.echo, err=True))


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens, before anything slow is done."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise OSError(f"cannot listen on {host}, port {port}: {reason}; choose another with --port") from None
    return listener
