"""The page in a real browser: what its tests share."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from web_server import build_quick_matcher, encode, run_server

from quadmatch.web.app import build_app
from quadmatch.web.uploads import Limits

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
pytest.importorskip("playwright", reason="the page's tests need playwright: pip install playwright")
if BROWSER is None:
    print("the page's tests are left out: there is no chromium")
    pytest.skip("there is no chromium", allow_module_level=True)

from playwright.sync_api import expect, sync_playwright  # noqa: E402

expect.set_options(timeout=60_000)

WIDTH, HEIGHT = 300, 200
PLACES = [(0.2, 0.3), (0.75, 0.25), (0.5, 0.7), (0.3, 0.8)]
DROP = """(files) => {
  const transfer = new DataTransfer();
  for (const { name, content } of files)
    transfer.items.add(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name));
  const target = document.querySelector(files[0].target ?? "#stage");
  for (const kind of ["dragenter", "dragover", "drop"])
    target.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }));
}"""

# Every change draws all lines anew, so that one is found and measured in a single call.
MIDDLE = """() => {
  const line = document.querySelector("#lines .line:not(.under)");
  const at = line.getPointAtLength(line.getTotalLength() / 2), box = line.ownerSVGElement.getBoundingClientRect();
  return { x: at.x + box.x, y: at.y + box.y, path: line.getAttribute("d") };
}"""
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"

# Two taps delete if they are quick, and one that lasts does too: neither is to hang on how busy a machine is.
STOP_TIME = """() => {
  const { setTimeout } = window, { now } = performance, still = performance.now();
  Object.assign(window, { setTimeout: () => 0, goOn: () => {
    window.setTimeout = setTimeout;
    performance.now = now;
  } });
  performance.now = () => still;
}"""


def draw_scene(seed: int = 0) -> np.ndarray:
    """Coloured tiles, smooth enough for a look and different enough for a match."""
    tiles = np.random.default_rng(seed).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(tiles).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))


@pytest.fixture(scope="module")
def matcher():
    return build_quick_matcher()


@pytest.fixture(scope="module")
def address(matcher):
    limits = Limits(bytes=2**20, points=40, seconds=30.0)
    with run_server(build_app(matcher, limits, model="quick", load=lambda name: matcher)) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"], timeout=160_000)
        yield made
        made.close()


@pytest.fixture
def faults():
    return []


@pytest.fixture
def start(browser, address, faults):
    """Opens the page; whatever it asks of other hosts, or raises, is a fault."""
    contexts = []

    def open_page(path="/", width=1280, height=860, prepare=None, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith((address, "blob:", "data:")) else faults.append(request.url),
        )
        page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
        if prepare:
            prepare(page)
        page.goto(address + path)
        if path == "/":
            # The server's status brings the limits and the examples, which push all else down.
            expect(page.locator("#model")).to_be_visible()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def drop(page, *files, target=None):
    content = [{"name": name, "content": base64.b64encode(data).decode(), "target": target} for name, data in files]
    page.evaluate(DROP, content)


def settle(page):
    """Wait until the page, which draws in the next frame, has drawn what it was asked for."""
    page.evaluate(FRAMES)


def await_pictures(page, sides="ab"):
    """The frames of pictures that were dropped, once nothing moves them any more."""
    frames = [page.locator(f'.pane[data-side="{side}"] .frame') for side in sides]
    for side, frame in zip(sides, frames):
        expect(frame).to_be_visible()
        expect(page.locator(f'.pane[data-side="{side}"] .busy')).to_be_hidden()
    settle(page)
    return frames


def fill(page, seeds=(0, 0)):
    """Two pictures with four points each."""
    drop(page, ("one ä.png", encode(draw_scene(seeds[0]))), ("two.png", encode(draw_scene(seeds[1]))))
    for frame in await_pictures(page):
        box = frame.bounding_box()
        for x, y in PLACES:
            frame.click(position={"x": x * box["width"], "y": y * box["height"]})
        expect(frame.locator(".point")).to_have_count(len(PLACES))
    settle(page)
    return [page.locator(f'.pane[data-side="{side}"] .point') for side in "ab"]


def read_download(page, button):
    with page.expect_download() as download:
        page.click(button)
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()
