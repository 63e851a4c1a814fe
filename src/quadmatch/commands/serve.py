"""`quadmatch serve`: the page on localhost."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Annotated

import typer

INSTALL = "pip install fastapi python-multipart uvicorn opencv-python-headless scikit-image"
"""What the page needs beside the package."""


def serve(
    model: Annotated[str, typer.Option(help="A model's name, its file, or a run folder.")] = "default",
    host: Annotated[str, typer.Option(help="Where to listen; others can reach it unless it is loopback.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8420,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Open a page in the browser on which two pictures are matched; nothing leaves this machine."""
    try:
        import uvicorn

        from quadmatch.web.app import build_app
        from quadmatch.web.connections import configure
    except ImportError as error:
        raise ImportError(f"the page needs {error.name}: {INSTALL}") from None
    from quadmatch.models.load import load, read_aliases
    from quadmatch.own_images.warm_up import warm_up
    from quadmatch.web.guard import is_loopback

    with bind(host, port) as listener:
        typer.echo(f"loading the model {model} …")
        matcher = load(model)
        warm_up(matcher)
        app = build_app(matcher, model=read_aliases().get(model, model), host=host, load=load)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/"
        typer.echo(f"{address}  (Ctrl+C ends it)")
        if not is_loopback(host):
            typer.echo("note: other machines can reach this page, and there is no password", err=True)
        if open_page:
            typer.launch(address)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(configure(app)).run(sockets=[listener])


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
