"""The page in a real browser, from two dropped files to the downloaded match."""

# ruff: noqa: F811
from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from web_page import (  # noqa: F401
    DROP,
    HEIGHT,
    MIDDLE,
    PLACES,
    STOP_TIME,
    WIDTH,
    address,
    await_pictures,
    browser,
    draw_scene,
    drop,
    expect,
    faults,
    fill,
    matcher,
    read_download,
    settle,
    start,
)
from web_server import encode, wait_until

from quadmatch.own_images.answer import read_schema


def test_from_two_dropped_files_to_the_downloaded_match(start, matcher) -> None:
    page = start()
    expect(page.locator("#match")).to_be_disabled()
    expect(page.locator("#why")).to_have_text("Add two pictures to begin.")
    first, second = fill(page)
    expect(first).to_have_count(4)
    dot, box = second.nth(1).bounding_box(), page.locator('.pane[data-side="b"] .frame').bounding_box()
    page.mouse.move(dot["x"] + 15, dot["y"] + 15)
    page.mouse.down()
    page.mouse.move(dot["x"] + 25, dot["y"] + 35, steps=4)
    page.mouse.up()
    second.nth(3).dblclick()
    expect(second).to_have_count(3)
    page.mouse.dblclick(box["x"] + 20, box["y"] + 20)
    expect(second).to_have_count(4)  # the second click of two on the bare picture does not delete
    second.nth(3).dblclick()
    expect(second).to_have_count(3)
    page.click("#match")
    expect(page.locator("#pairs button")).to_have_count(3)
    expect(page.locator("#found")).to_have_text("3 pairs")
    expect(page.locator("#detail")).to_have_text("1 point left alone.")
    expect(page.locator("#lines .line:not(.under)")).to_have_count(3)

    name, content = read_download(page, "#save-json")
    saved = json.loads(content)
    Draft202012Validator(read_schema("matches")).validate(saved)
    assert name == "matches.json"
    assert np.allclose(saved["points_a"], np.array(PLACES) * [WIDTH, HEIGHT], atol=1)
    moved = np.array(PLACES[1]) * [WIDTH, HEIGHT] + np.array([10, 20]) * WIDTH / box["width"]
    assert np.allclose(saved["points_b"][1], moved, atol=1)
    own = matcher.match(draw_scene(), saved["points_a"], draw_scene(), saved["points_b"])
    assert saved["pairs"] == own.pairs.tolist()
    assert np.allclose(saved["scores"], own.scores, atol=1e-4)
    assert sorted([i for i, _ in saved["pairs"]] + saved["unmatched_a"]) == [0, 1, 2, 3]
    assert (saved["image_a"], saved["size_b"], saved["constraint"]) == ("one ä.png", [WIDTH, HEIGHT], True)

    page.uncheck("#constraint", force=True)
    free = matcher.match(draw_scene(), saved["points_a"], draw_scene(), saved["points_b"], constraint=False)
    loose = json.loads(read_download(page, "#save-json")[1])
    assert loose["constraint"] is False
    assert loose["pairs"] == free.pairs.tolist()
    page.check("#edges", force=True)
    expect(page.locator("#lines .edge")).to_have_count(2)
    name, content = read_download(page, "#save-png")
    assert name == "matches.png"
    assert content.startswith(b"\x89PNG")
    least = int(free.scores.max() * 100) / 100
    page.locator("#threshold").fill(str(least))
    kept = int((free.scores >= least).sum())
    expect(page.locator("#pairs button")).to_have_count(kept)
    few = json.loads(read_download(page, "#save-json")[1])
    Draft202012Validator(read_schema("matches")).validate(few)
    assert few["partial"] is (kept < 3)
    assert len(few["pairs"]) == kept


def test_a_pair_lights_up_wherever_it_is_pointed_at(start) -> None:
    page = start()
    first, _ = fill(page)
    page.click("#match")
    rows = page.locator("#pairs button")
    rows.nth(0).hover()
    looked = page.locator("#lines .line.looked:not(.under)")
    expect(looked).to_have_count(1)
    expect(page.locator("#lines .score text")).to_have_text(rows.nth(0).locator(".value").inner_text())
    page.mouse.move(5, 5)
    expect(looked).to_have_count(0)
    first.nth(2).focus()
    expect(looked).to_have_count(1)
    expect(page.locator("#pairs button.looked .ends")).to_contain_text("A2")
    page.keyboard.press("Escape")
    expect(looked).to_have_count(0)
    middle = page.evaluate(MIDDLE)
    page.mouse.move(middle["x"], middle["y"])
    expect(looked).to_have_count(1)
    expect(looked).to_have_attribute("d", middle["path"])


def test_points_that_change_make_the_match_stale(start) -> None:
    page = start()
    first, _ = fill(page)
    page.click("#match")
    expect(page.locator("#pairs button")).to_have_count(4)
    first.nth(0).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#match")).to_have_text("Match again")
    expect(page.locator("#save-json")).to_be_disabled()
    page.keyboard.press("Delete")
    expect(page.locator("#pairs button")).to_have_count(3)
    for _ in range(2):
        page.keyboard.press("Control+z")
    expect(first).to_have_count(4)
    page.click("#match")
    expect(page.locator("#save-json")).to_be_enabled()


def test_the_keyboard_is_enough(start) -> None:
    page = start()
    for side in "ab":
        chooser = page.locator(f'.pane[data-side="{side}"] .choose')
        chooser.set_input_files({"name": f"{side}.png", "mimeType": "image/png", "buffer": encode(draw_scene())})
        (frame,) = await_pictures(page, side)
        for moves in (("ArrowLeft", 3), ("ArrowUp", 2)):
            frame.focus()
            page.keyboard.press("Enter")
            for _ in range(moves[1]):
                page.keyboard.press(f"Shift+{moves[0]}")
        points = page.locator(f'.pane[data-side="{side}"] .point')
        expect(points).to_have_count(2)
        expect(points.nth(1)).to_be_focused()
        settle(page)
        outline = points.nth(1).evaluate("one => getComputedStyle(one, '::after').boxShadow")
        assert outline.count("rgb") >= 3  # a ring that is seen on any picture
    page.keyboard.press("PageUp")
    expect(page.locator('[data-number="B0"]')).to_be_focused()
    expect(page.locator("#live")).not_to_be_empty()
    first = page.locator('.pane[data-side="a"] .point')
    expect(first.nth(0)).to_have_attribute("aria-label", re.compile("^Point A0 at 120, 100"))
    first.nth(0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Delete")
    expect(first).to_have_count(1)
    expect(page.locator('[data-number="A0"]')).to_be_focused()
    expect(page.locator("#match")).to_be_enabled()  # else Tab would pass it
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "match":
            break
    expect(page.locator("#match")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#pairs button")).to_have_count(1)


def test_fingers_add_move_and_delete(start) -> None:
    page = start(width=390, height=844, has_touch=True, is_mobile=True)
    drop(page, ("one.png", encode(draw_scene())), target='.pane[data-side="a"]')
    (frame,) = await_pictures(page, "a")
    points = page.locator('.pane[data-side="a"] .point')
    frame.scroll_into_view_if_needed()
    settle(page)
    box = frame.bounding_box()
    page.evaluate(STOP_TIME)
    for x in (0.2, 0.5, 0.8):
        page.touchscreen.tap(box["x"] + x * box["width"], box["y"] + 60)
    expect(points).to_have_count(3)
    page.touchscreen.tap(box["x"] + 0.2 * box["width"], box["y"] + 60)
    page.touchscreen.tap(box["x"] + 0.2 * box["width"], box["y"] + 60)
    expect(points).to_have_count(2)
    place = {"x": box["x"] + 0.5 * box["width"], "y": box["y"] + 60}
    session = page.context.new_cdp_session(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [place]})
    for step in range(1, 5):
        moved = {"x": place["x"], "y": place["y"] + 10 * step}
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [moved]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(points).to_have_count(2)
    goal = pytest.approx(place["y"] + 40, abs=2)
    wait_until(lambda: points.nth(0).bounding_box()["y"] + 15 == goal)
    page.evaluate("goOn()")
    place = {"x": box["x"] + 0.8 * box["width"], "y": box["y"] + 60}
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [place]})
    expect(points).to_have_count(1)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    settle(page)
    expect(points).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_bad_files_are_named_where_they_were_dropped(start) -> None:
    page = start()
    pane = page.locator('.pane[data-side="b"]')
    shown = pane.locator(".fault")
    for name, content, reason in (
        ("notes.txt", b"no picture", "not a picture"),
        ("cut.png", encode(draw_scene())[:900], "damaged"),
        ("large.bmp", encode(np.zeros((800, 800, 3), np.uint8), "BMP"), "at most 1 MB"),
        ("empty.png", b"", "empty"),
    ):
        drop(page, (name, content), target='.pane[data-side="b"]')
        expect(shown).to_contain_text(name)
        expect(shown).to_contain_text(reason)
        expect(pane.locator(".busy")).to_be_hidden()
    drop(page, ("fine.png", encode(draw_scene())), target='.pane[data-side="b"]')
    expect(pane.locator(".frame")).to_be_visible()
    expect(shown).to_be_hidden()
    page.evaluate(DROP.replace("files[0].target ??", ""), [])
    expect(page.locator("#message")).to_contain_text("none")
    page.click("#dismiss")
    expect(page.locator("#message")).to_be_hidden()


def test_the_page_never_stays_stuck(start) -> None:
    page = start()
    fill(page)
    busy = json.dumps({"error": {"code": "busy", "message": "Too many pairs are waiting."}})
    button, message = page.locator("#match"), page.locator("#message")
    for answer, reason in (
        (lambda route: route.fulfill(status=503, body=busy), "Too many pairs"),
        (lambda route: route.abort(), "does not answer"),
        (lambda route: route.fulfill(status=502, body="<html>"), "502"),
        (lambda route: route.fulfill(status=200, body="{"), "cannot be read"),
    ):
        page.route("**/api/match", answer)
        button.click()
        expect(message).to_contain_text(reason)
        expect(button).to_be_enabled()
        page.unroute("**/api/match")
    button.click()
    expect(page.locator("#pairs button")).to_have_count(4)
    expect(message).to_be_hidden()


def test_a_server_that_says_nothing_is_given_up(start) -> None:
    status = {
        "version": "",
        "model": "quick",
        "models": [{"name": "quick", "about": "Small."}],
        "examples": [],
        "limits": {"bytes": 2**20, "pixels": 10**6, "points": 40, "seconds": 0.2},
    }

    def prepare(page):
        page.route("**/api/status", lambda route: route.fulfill(json=status))
        page.route("**/api/picture", lambda route: None)

    page = start(prepare=prepare)
    expect(page.locator("#model")).to_have_value("quick")
    drop(page, ("slow.png", encode()), target='.pane[data-side="a"]')
    expect(page.locator(".fault").nth(0)).to_contain_text("did not answer within 0.2 s")
    expect(page.locator(".busy").nth(0)).to_be_hidden()


def test_detection_fills_a_picture(start) -> None:
    pytest.importorskip("cv2")
    page = start()
    tiles = np.kron(np.random.default_rng(0).integers(0, 2, (5, 7)), np.ones((40, 40))).astype(np.uint8) * 220
    drop(page, ("tiles.png", encode(tiles)))
    pane = page.locator('.pane[data-side="a"]')
    pane.locator(".many").fill("7")
    pane.locator(".detect").click()
    expect(pane.locator(".point")).to_have_count(7)
    expect(pane.locator(".detect")).to_have_text("Detect")
    pane.locator(".clear").click()
    expect(pane.locator(".point")).to_have_count(0)
    pane.locator(".undo").click()
    expect(pane.locator(".point")).to_have_count(7)


def test_the_description_is_a_page(start) -> None:
    page = start("/docs")
    expect(page.locator(".api section")).to_have_count(7)
    expect(page.locator("#call")).to_contain_text("curl http://127.0.0.1")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1920, 1280, 390])
def test_screenshots(start, tmp_path, width, theme) -> None:
    pytest.importorskip("skimage")
    folder = Path(os.environ.get("QUADMATCH_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    page = start(width=width, height=860, color_scheme=theme, reduced_motion="reduce")
    expect(page.locator(".chip").nth(0)).to_be_visible()
    page.screenshot(path=folder / f"empty-{width}-{theme}.png")
    page.locator(".chip").nth(0).click()
    expect(page.locator("#pairs button").nth(0)).to_be_visible()  # it matches at once
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=folder / f"match-{width}-{theme}.png", full_page=True)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = np.mean([int(value) for value in ground[4:-1].split(",")])
    assert (brightness > 128) == (theme == "light")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#theme")
    body = page.locator("body")
    expect(body).not_to_have_css("background-color", ground)
    chosen = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    expect(body).to_have_css("background-color", chosen)
