"""The server: the page, its five calls and their description."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from quadmatch.matcher import Matcher
from quadmatch.provenance import find_version
from quadmatch.subjects import Request as Picture
from quadmatch.web import descriptions
from quadmatch.web.answers import Shown, write_answer, write_preview
from quadmatch.web.batching import Batcher, Busy
from quadmatch.web.examples import list_examples, make_example
from quadmatch.web.guard import Guard
from quadmatch.web.uploads import (
    Budget,
    Limits,
    Refused,
    decode_picture,
    measure_picture,
    parse_number,
    parse_points,
    parse_switch,
    read_form,
    take_file,
    take_name,
)

STATIC = Path(__file__).resolve().parent / "static"
LOOK = 0.25
"""Seconds between looks whether a client is still there."""
LOG = logging.getLogger(__name__)


class Service:
    """What the calls share: the matcher behind its queue, and the limits."""

    def __init__(self, matcher: Matcher, limits: Limits, model: str) -> None:
        self.limits, self.model = limits, model
        self.precision = str(getattr(matcher.features, "precision", "unknown"))
        self.batcher = Batcher(matcher, largest=limits.batch, waiting=limits.clients, seconds=limits.seconds)
        self.pixels = Budget(limits.together)
        self.clients = 0

    def describe(self) -> dict[str, Any]:
        """What the page needs to know at its start."""
        limits = {name: getattr(self.limits, name) for name in ("bytes", "pixels", "points", "seconds")}
        return {
            "version": find_version(),
            "model": self.model,
            "limits": limits,
            "examples": list_examples(),
            "batches": self.batcher.batches,
        }

    async def show(self, request: Request) -> Response:
        """Decode a picture and send it back as the page shows it."""
        form = await read_form(request, self.limits, files=1)
        content = await take_file(form, "image", self.limits)
        width, height = measure_picture(content, "image", self.limits)
        async with self.pixels.hold(width * height):
            pixels = await run_sync(decode_picture, content, "image")
            preview = await run_sync(write_preview, pixels)
        size = {"X-Picture-Height": str(pixels.shape[0]), "X-Picture-Width": str(pixels.shape[1])}
        return Response(preview, media_type="image/jpeg", headers=size)

    async def detect(self, request: Request) -> Response:
        """Find keypoints in a picture."""
        form = await read_form(request, self.limits, files=1)
        content = await take_file(form, "image", self.limits)
        count = parse_number(form.get("count", "30"), "count", 1, self.limits.points)
        width, height = measure_picture(content, "image", self.limits)
        async with self.pixels.hold(width * height):
            pixels = await run_sync(decode_picture, content, "image")
            try:
                from quadmatch.detection import find_corners

                points = await run_sync(find_corners, pixels, count)
            except ImportError as error:
                raise Refused(501, "no-detector", f"Points cannot be detected here: {error}") from None
        points = points.clip(0, [pixels.shape[1], pixels.shape[0]])
        return JSONResponse({"points": [[round(float(x), 2), round(float(y), 2)] for x, y in points]})

    async def match(self, request: Request) -> Response:
        """Match the keypoints of two pictures, with the constraint and without."""
        form = await read_form(request, self.limits, files=2)
        contents = {side: await take_file(form, f"image_{side}", self.limits) for side in "ab"}
        partial = parse_switch(form.get("partial"), "partial")
        sizes = {side: measure_picture(contents[side], f"image_{side}", self.limits) for side in "ab"}
        async with self.pixels.hold(sum(width * height for width, height in sizes.values())):
            pictures, shown = [], []
            for side in "ab":
                pixels = await run_sync(decode_picture, contents.pop(side), f"image_{side}")
                height, width = pixels.shape[:2]
                text = form.get(f"points_{side}", "[]")
                points = parse_points(text, f"points_{side}", width, height, self.limits)
                pictures.append(Picture(pixels, points, None, f"image_{side}"))
                shown.append(Shown(take_name(form, f"image_{side}"), (width, height), points))
            answer = await self.batcher.match(*pictures, partial=partial)
        a, b = shown
        content = write_answer(answer, a, b, model=self.model, precision=self.precision, partial=partial)
        return JSONResponse(content)

    async def answer(self, request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        """A call's answer; none for a client that left, and a refusal where too many are here."""
        if self.clients >= self.limits.clients:
            raise Refused(503, "busy", "The server is busy. Try again in a moment.")
        self.clients += 1
        work = asyncio.ensure_future(call(request))
        try:
            while not (await asyncio.wait({work}, timeout=LOOK))[0]:
                if await request.is_disconnected():
                    return Response(status_code=499)
            return work.result()
        except (Refused, Busy):
            raise
        except Exception:
            LOG.exception("%s failed", request.url.path)
            raise Refused(500, "failed", "The server failed on this; its log says how.") from None
        finally:
            self.clients -= 1
            work.cancel()
            with suppress(BaseException):
                await work


def build_app(
    matcher: Matcher, limits: Limits | None = None, *, model: str = "default", host: str = "127.0.0.1"
) -> FastAPI:
    """The server for one model; `host` is where it will be bound, which decides what names it answers under."""
    service = Service(matcher, limits or Limits(), model)

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
        return JSONResponse({"error": {"code": error.code, "message": error.message}}, error.status)

    @app.exception_handler(Busy)
    async def postpone(request: Request, error: Busy) -> JSONResponse:
        content = {"error": {"code": "busy", "message": str(error)}}
        return JSONResponse(content, 503, headers={"Retry-After": "2"})

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
        made = await _make(name)
        a, b = (points.tolist() for points in made.points)
        return JSONResponse({"name": name, "points_a": a, "points_b": b, "truth": made.truth.tolist()})

    @app.get("/api/examples/{name}/{side}.png", **descriptions.EXAMPLE_PICTURE)
    async def example_picture(name: str, side: str) -> Response:
        if side not in ("a", "b"):
            raise Refused(404, "no-example", "An example has the pictures a.png and b.png.")
        return Response((await _make(name)).pictures["ab".index(side)], media_type="image/png")

    @app.post("/api/picture", **descriptions.PICTURE)
    async def picture(request: Request) -> Response:
        return await service.answer(request, service.show)

    @app.post("/api/detect", **descriptions.DETECT)
    async def detect(request: Request) -> Response:
        return await service.answer(request, service.detect)

    @app.post("/api/match", **descriptions.MATCH)
    async def match(request: Request) -> Response:
        return await service.answer(request, service.match)


async def _make(name: str) -> Any:
    if name not in {one["name"] for one in list_examples()}:
        raise Refused(404, "no-example", f"There is no example {name[:60]!r}.")
    return await run_sync(make_example, name)
