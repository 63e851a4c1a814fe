"""What the server does for its callers: pictures shown, keypoints detected, pairs matched, within limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
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
from quadmatch.web.arrivals import Arrivals
from quadmatch.web.batching import Batcher, Job
from quadmatch.web.budget import Budget
from quadmatch.web.examples import list_examples
from quadmatch.web.fields import (
    check_inside,
    check_part,
    parse_names,
    parse_number,
    parse_orientation,
    parse_part,
    parse_points,
    parse_switch,
)
from quadmatch.web.forms import read_form
from quadmatch.web.line import Busy
from quadmatch.web.points_files import describe_file
from quadmatch.web.shelf import Shelf
from quadmatch.web.uploads import Limits, Refused, decode_picture, measure_picture, take_file, take_name

LOOK = 0.25
"""Seconds between looks whether a client is still there, and whether it can still be served in time."""
LOG = logging.getLogger(__name__)


class Service:
    """What the calls share: the models behind their queue, and the limits."""

    def __init__(self, shelf: Shelf, limits: Limits) -> None:
        self.limits, self.shelf = limits, shelf
        first = shelf.loaded[shelf.first]
        bounds = {"largest": limits.batch, "waiting": limits.clients, "memory": limits.features}
        self.batcher = Batcher(first, seconds=limits.seconds, **bounds)
        self.pixels = Budget(limits.together)
        self.arrivals = Arrivals(limits)
        self.clients = 0
        """Whose uploads are whole."""

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

    async def show(self, form: FormData) -> Response:
        """Decode a picture and send it back as the page shows it."""
        content = await take_file(form, "image", self.limits)
        width, height = measure_picture(content, "image", self.limits)
        async with self.pixels.hold(width * height):
            pixels = await run_sync(decode_picture, content, "image")
            preview = await run_sync(write_preview, pixels)
        size = {"X-Picture-Height": str(pixels.shape[0]), "X-Picture-Width": str(pixels.shape[1])}
        return Response(preview, media_type="image/jpeg", headers=size)

    async def detect(self, form: FormData) -> Response:
        """Find keypoints in a picture."""
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

    async def read_points(self, form: FormData) -> Response:
        """The points that a file has for a picture."""
        content = await take_file(form, "file", self.limits)
        size = [parse_number(form.get(side), side, 1, self.limits.pixels) for side in ("width", "height")]
        image = str(form.get("image") or "")
        names = take_name(form, "file"), image, (size[0], size[1])
        return JSONResponse(await run_sync(describe_file, content, *names, self.limits))

    async def match(self, form: FormData) -> Response:
        """Match the keypoints of two pictures both ways; refused at once where too much is to be done before."""
        contents = {side: await take_file(form, f"image_{side}", self.limits) for side in "ab"}
        partial = parse_switch(form.get("partial"), "partial")
        orientation = parse_orientation(form.get("orientation"), "orientation")
        model = str(form.get("model") or self.shelf.first)
        matcher = await self.shelf.take(model)
        sides = {side: self._read_fields(form, contents[side], side) for side in "ab"}
        pixels = sum(width * height for width, height in (one.size or (0, 0) for one in sides.values()))
        joined = self.batcher.join(*sides.values(), matcher=matcher, orientation=orientation)
        async with joined as place, self.pixels.hold(pixels):
            a, b = [await self._show_side(sides[side], contents.pop(side)) for side in "ab"]
            answer = await self.batcher.match(Job(a, b, partial, matcher, orientation), place)
        precision = str(getattr(matcher.features, "precision", "unknown"))
        settings = Settings(model, partial, orientation=orientation, precision=precision)
        return JSONResponse(write_answer(answer, a, b, settings))

    def _read_fields(self, form: FormData, content: bytes, side: str) -> Picture:
        """One of the two pictures of a form, with its points, their names and its box, before it is decoded."""
        size = measure_picture(content, f"image_{side}", self.limits)
        points = parse_points(form.get(f"points_{side}", "[]"), f"points_{side}", self.limits)
        picture = make_picture(None, points, parse_part(form.get(f"box_{side}"), f"box_{side}"), name=f"image_{side}")
        names = parse_names(form.get(f"names_{side}"), f"names_{side}", len(points))
        keypoints = replace(picture.keypoints, names=names)
        return replace(picture, keypoints=keypoints, file=take_name(form, f"image_{side}"), size=size)

    async def _show_side(self, picture: Picture, content: bytes) -> Picture:
        """The picture, decoded: its points and its box must lie in what is upright now."""
        pixels = await run_sync(decode_picture, content, picture.name)
        size, side = (pixels.shape[1], pixels.shape[0]), picture.name[-1]
        check_inside(picture.keypoints.points, f"points_{side}", *size)
        check_part(picture.keypoints.box, f"box_{side}", *size)
        return replace(picture, image=pixels, size=size)

    async def answer(
        self, request: Request, call: Callable[[FormData], Coroutine[Any, Any, Response]], *, files: int
    ) -> Response:
        """A call's answer to a form with so many files; none for a client that left, and a refusal if many are here."""
        self._check_room()
        try:
            form = await read_form(request, self.arrivals, files=files)
            self._check_room()
            return await self._work(request, call(form))
        except (Refused, Busy):
            raise
        except ClientDisconnect:  # It left amid its upload.
            return Response(status_code=499)
        except Exception:
            LOG.exception("%s failed", request.url.path)
            raise Refused(500, "failed", "The server failed on this; its log says how.") from None

    def _check_room(self) -> None:
        if self.clients >= self.limits.clients:
            raise Busy("The server is busy. Try again later.", self.batcher.line.find_wait())

    async def _work(self, request: Request, call: Coroutine[Any, Any, Response]) -> Response:
        """What a call gives; it ends when its client leaves."""
        self.clients += 1
        work = asyncio.ensure_future(call)
        try:
            while not (await asyncio.wait({work}, timeout=LOOK))[0]:
                if await request.is_disconnected():
                    return Response(status_code=499)
                self.batcher.line.review()
            return work.result()
        finally:
            self.clients -= 1
            work.cancel()
            with suppress(BaseException):
                await work
