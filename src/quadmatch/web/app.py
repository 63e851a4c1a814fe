"""The server: the page, its calls and their description."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import ceil
from pathlib import Path

from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from quadmatch.machine import find_version
from quadmatch.matcher import Matcher
from quadmatch.web import descriptions
from quadmatch.web.examples import describe_example, draw_example, list_examples
from quadmatch.web.guard import Guard
from quadmatch.web.line import Busy
from quadmatch.web.service import Service
from quadmatch.web.shelf import Shelf
from quadmatch.web.uploads import Limits, Refused

STATIC = Path(__file__).resolve().parent / "static"


def build_app(
    matcher: Matcher,
    limits: Limits | None = None,
    *,
    model: str = "default",
    host: str = "127.0.0.1",
    load: Callable[[str], Matcher] | None = None,
) -> FastAPI:
    """The server for one model, and with `load` for all that ship, which are loaded when they are asked for.

    `host` is where it will be bound, which decides what names it answers under.
    """
    service = Service(Shelf(matcher, model, load), limits or Limits())

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        yield
        await run_sync(service.batcher.close)

    app = FastAPI(
        title="quadmatch",
        version=find_version(),
        description=descriptions.INTRODUCTION,
        docs_url=None,
        redoc_url=None,
        lifespan=live,
    )
    app.state.service = service
    _add_pages(app)
    _add_calls(app, service)

    @app.exception_handler(Refused)
    async def refuse(request: Request, error: Refused) -> JSONResponse:
        # Who was too slow may still send: nothing more is heard on that connection.
        close = {"Connection": "close"} if error.status == 408 else None
        return JSONResponse({"error": {"code": error.code, "message": error.message}}, error.status, close)

    @app.exception_handler(Busy)
    async def postpone(request: Request, error: Busy) -> JSONResponse:
        content = {"error": {"code": "busy", "message": str(error)}}
        return JSONResponse(content, 503, headers={"Retry-After": str(ceil(error.seconds))})

    app.add_middleware(Guard, host=host)
    return app


def _add_pages(app: FastAPI) -> None:
    app.mount("/static", StaticFiles(directory=STATIC), name="static")

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def documentation() -> FileResponse:
        return FileResponse(STATIC / "api.html")


def _add_calls(app: FastAPI, service: Service) -> None:
    @app.get("/api/status", **descriptions.STATUS)
    async def status() -> JSONResponse:
        return JSONResponse(service.describe())

    @app.get("/api/examples/{name}", **descriptions.EXAMPLE)
    async def example(name: str) -> JSONResponse:
        return JSONResponse(await run_sync(describe_example, _find_example(name)))

    @app.get("/api/examples/{name}/{side}.png", **descriptions.EXAMPLE_PICTURE)
    async def example_picture(name: str, side: str) -> Response:
        if side not in ("a", "b"):
            raise Refused(404, "no-example", "An example has the pictures a.png and b.png.")
        picture = await run_sync(draw_example, _find_example(name), side)
        return Response(picture, media_type="image/png")

    @app.post("/api/picture", **descriptions.PICTURE)
    async def picture(request: Request) -> Response:
        return await service.answer(request, service.show, files=1)

    @app.post("/api/points", **descriptions.POINTS_FILE)
    async def points(request: Request) -> Response:
        return await service.answer(request, service.read_points, files=1)

    @app.post("/api/detect", **descriptions.DETECT)
    async def detect(request: Request) -> Response:
        return await service.answer(request, service.detect, files=1)

    @app.post("/api/match", **descriptions.MATCH)
    async def match(request: Request) -> Response:
        service.batcher.line.check()  # Before anything is uploaded.
        return await service.answer(request, service.match, files=2)


def _find_example(name: str) -> str:
    if name not in {one["name"] for one in list_examples()}:
        raise Refused(404, "no-example", f"There is no example {name[:60]!r}.")
    return name
