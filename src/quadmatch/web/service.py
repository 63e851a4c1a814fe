"""What the server does for its callers: pictures shown, keypoints detected, pairs matched, within limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect

from quadmatch.datasets.picture import Picture, make_picture
from quadmatch.machine import find_version
from quadmatch.own_images.answer import Settings
from quadmatch.web.answers import write_answer, write_preview
from quadmatch.web.batching import Batcher, Busy
from quadmatch.web.examples import list_examples
from quadmatch.web.fields import parse_names, parse_number, parse_orientation, parse_part, parse_points, parse_switch
from quadmatch.web.points_files import describe_file
from quadmatch.web.shelf import Shelf
from quadmatch.web.uploads import Limits, Refused, decode_picture, measure_picture, read_form, take_file, take_name

LOOK = 0.25
"""Seconds between looks whether a client is still there."""
LOG = logging.getLogger(__name__)


class Budget:
    """Amounts that may be held together; who asks for more waits."""

    def __init__(self, total: int) -> None:
        self.total, self.held = total, 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, amount: int) -> AsyncIterator[None]:
        """Wait until the amount is free, and hold it."""
        amount = min(amount, self.total)
        async with self._changed:
            await self._changed.wait_for(lambda: self.held + amount <= self.total)
            self.held += amount
        try:
            yield
        finally:
            async with self._changed:
                self.held -= amount
                self._changed.notify_all()


class Service:
    """What the calls share: the models behind their queue, and the limits."""

    def __init__(self, shelf: Shelf, limits: Limits) -> None:
        self.limits, self.shelf = limits, shelf
        first = shelf.loaded[shelf.first]
        bounds = {"largest": limits.batch, "waiting": limits.clients, "memory": limits.features}
        self.batcher = Batcher(first, seconds=limits.seconds, **bounds)
        self.pixels = Budget(limits.together)
        self.clients = 0
        self.matches = 0
        """Of the clients, those who wait for a match."""

    def describe(self) -> dict[str, Any]:
        """What the page needs to know at its start."""
        limits = {name: getattr(self.limits, name) for name in ("bytes", "pixels", "points", "seconds")}
        return {
            "version": find_version(),
            "model": self.shelf.first,
            "models": self.shelf.describe(),
            "limits": limits,
            "examples": list_examples(),
            "batches": self.batcher.batches,
            "pictures": {"convolved": self.batcher.recent.made, "found_again": self.batcher.recent.found},
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
                from quadmatch.own_images.corners import find_corners

                points = await run_sync(find_corners, pixels, count)
            except ImportError as error:
                raise Refused(501, "no-detector", f"Points cannot be detected here: {error}") from None
        points = points.clip(0, [pixels.shape[1], pixels.shape[0]])
        return JSONResponse({"points": [[round(float(x), 2), round(float(y), 2)] for x, y in points]})

    async def read_points(self, request: Request) -> Response:
        """The points that a file has for a picture."""
        form = await read_form(request, self.limits, files=1)
        content = await take_file(form, "file", self.limits)
        size = [parse_number(form.get(side), side, 1, self.limits.pixels) for side in ("width", "height")]
        image = str(form.get("image") or "")
        names = take_name(form, "file"), image, (size[0], size[1])
        return JSONResponse(await run_sync(describe_file, content, *names, self.limits))

    async def match(self, request: Request) -> Response:
        """Match the keypoints of two pictures both ways; refused at once where too many came before."""
        wait = self.matches * self.batcher.pace
        if wait > self.limits.seconds:
            raise Busy(f"Those who came before take about {wait:.0f} s. Try again later.", wait - self.limits.seconds)
        self.matches += 1
        try:
            return await self._match(request)
        finally:
            self.matches -= 1

    async def _match(self, request: Request) -> Response:
        form = await read_form(request, self.limits, files=2)
        contents = {side: await take_file(form, f"image_{side}", self.limits) for side in "ab"}
        partial = parse_switch(form.get("partial"), "partial")
        orientation = parse_orientation(form.get("orientation"), "orientation")
        model = str(form.get("model") or self.shelf.first)
        matcher = await self.shelf.take(model)
        sizes = {side: measure_picture(contents[side], f"image_{side}", self.limits) for side in "ab"}
        async with self.pixels.hold(sum(width * height for width, height in sizes.values())):
            a, b = [await self._read_side(form, contents.pop(side), side) for side in "ab"]
            answer = await self.batcher.match(a, b, partial=partial, matcher=matcher, orientation=orientation)
        precision = str(getattr(matcher.features, "precision", "unknown"))
        settings = Settings(model, partial, orientation=orientation, precision=precision)
        return JSONResponse(write_answer(answer, a, b, settings))

    async def _read_side(self, form: FormData, content: bytes, side: str) -> Picture:
        """One of the two pictures of a form, with its points, their names and its box."""
        pixels = await run_sync(decode_picture, content, f"image_{side}")
        height, width = pixels.shape[:2]
        points = parse_points(form.get(f"points_{side}", "[]"), f"points_{side}", width, height, self.limits)
        box = parse_part(form.get(f"box_{side}"), f"box_{side}", width, height)
        picture = make_picture(pixels, points, box, name=f"image_{side}")
        names = parse_names(form.get(f"names_{side}"), f"names_{side}", len(points))
        keypoints = replace(picture.keypoints, names=names)
        return replace(picture, keypoints=keypoints, file=take_name(form, f"image_{side}"), size=(width, height))

    async def answer(self, request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        """A call's answer; none for a client that left, and a refusal where too many are here."""
        if self.clients >= self.limits.clients:
            raise Busy("The server is busy. Try again in a moment.")
        self.clients += 1
        work = asyncio.ensure_future(call(request))
        try:
            while not (await asyncio.wait({work}, timeout=LOOK))[0]:
                if await request.is_disconnected():
                    return Response(status_code=499)
            return work.result()
        except (Refused, Busy):
            raise
        except ClientDisconnect:  # It left amid its upload.
            return Response(status_code=499)
        except Exception:
            LOG.exception("%s failed", request.url.path)
            raise Refused(500, "failed", "The server failed on this; its log says how.") from None
        finally:
            self.clients -= 1
            work.cancel()
            with suppress(BaseException):
                await work
