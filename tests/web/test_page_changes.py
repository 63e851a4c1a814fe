"""The page in a real browser: matches that outlive changes, zoom, files of points, models, examples, phones."""

# ruff: noqa: F811
from __future__ import annotations

import json

import numpy as np
import pytest
from web_page import (  # noqa: F401
    HEIGHT,
    PLACES,
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

from quadmatch.datasets.keypoint_files import read_keypoints
from quadmatch.datasets.picture import make_picture
from quadmatch.datasets.turning import turn_picture

# A frame after a change, all that it caused is drawn.
POINT = """(side) => [...document.querySelectorAll(`.pane[data-side="${side}"] .point`)].map((one) => {
  const at = one.getBoundingClientRect();
  return [at.x + at.width / 2, at.y + at.height / 2];
})"""
HIGH = "() => document.querySelector('#pairs button').getBoundingClientRect().height"
LABELS = """(side) => [...document.querySelectorAll(`.pane[data-side="${side}"] :is(button, input):not(.point)`)]
  .map((one) => one.getAttribute("aria-label"))"""
TILES = np.kron(np.random.default_rng(0).integers(0, 2, (5, 7)), np.ones((40, 40))).astype(np.uint8) * 220


def match(page):
    page.click("#match")
    expect(page.locator("#found")).to_have_text("4 pairs")


def test_the_button_stays_itself_while_it_works(start) -> None:
    page = start()
    fill(page)
    routes = []
    page.route("**/api/match", lambda route: routes.append(route))
    button = page.locator("#match")
    before = button.bounding_box()
    button.click()
    expect(button).to_have_text("Matching…")
    settle(page)
    assert button.bounding_box() == before
    wait_until(lambda: page.evaluate("1") and routes)
    routes[0].continue_()
    expect(page.locator("#found")).to_have_text("4 pairs")


def test_undo_brings_a_match_back(start) -> None:
    page = start()
    first, _ = fill(page)
    match(page)
    found, pane = page.locator("#found"), page.locator('.pane[data-side="a"]')
    first.nth(1).focus()
    page.keyboard.press("ArrowRight")
    expect(found).to_have_text("4 pairs, out of date")
    for button in ("#save-json", "#save-png"):
        expect(page.locator(button)).to_be_disabled()
    page.keyboard.press("Control+z")
    expect(found).to_have_text("4 pairs")
    expect(page.locator("#lines .line:not(.under)")).to_have_count(4)
    expect(first.nth(1)).to_be_focused()
    pane.locator(".clear").click()
    expect(found).to_have_text("4 pairs, out of date")
    pane.locator(".undo").click()
    expect(found).to_have_text("4 pairs")
    assert len(json.loads(read_download(page, "#save-json")[1])["pairs"]) == 4
    first.nth(0).dblclick()
    expect(first).to_have_count(3)
    expect(found).to_have_text("4 pairs, out of date")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Control+z")  # which nothing in a picture has the focus for
    expect(found).to_have_text("4 pairs")
    assert len(json.loads(read_download(page, "#save-json")[1])["pairs"]) == 4
    page.keyboard.press("Control+z")
    expect(first).to_have_count(3)  # the last one that was clicked
    page.keyboard.press("Control+z")
    expect(first).to_have_count(2)


def test_lines_that_are_out_of_date_are_seen_on_any_picture(start) -> None:
    page = start()
    first, _ = fill(page)
    match(page)
    first.nth(0).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#lines.stale")).to_be_visible()
    under = page.locator("#lines.stale .line.under").nth(0)
    expect(under).to_have_css("stroke", "rgb(11, 13, 18)")
    expect(under).not_to_have_css("display", "none")


def test_the_page_says_how_a_picture_is_turned(start) -> None:
    page = start()
    turned = turn_picture(make_picture(draw_scene(), [[x * WIDTH, y * HEIGHT] for x, y in PLACES]), "90")
    drop(page, ("a.png", encode(draw_scene())), ("b.png", encode(turned.image)))
    switch, told = page.locator("#turned"), page.locator("#turn")
    for frame, places in zip(await_pictures(page), (PLACES, turned.keypoints.points / (HEIGHT, WIDTH))):
        box = frame.bounding_box()
        for x, y in places:
            frame.click(position={"x": x * box["width"], "y": y * box["height"]})
    match(page)
    expect(told).to_have_text("Tries quarter turns and mirrors")
    assert json.loads(read_download(page, "#save-json")[1])["orientation"] == "0"
    page.locator("label:has(#turned)").click()
    expect(switch).to_be_checked()
    expect(page.locator("#found")).to_have_text("4 pairs, out of date")
    match(page)
    expect(told).to_have_text("Fits best turned 270° clockwise")
    saved = json.loads(read_download(page, "#save-json")[1])
    assert (saved["orientation"], saved["orientation_asked"]) == ("270", "auto")
    assert sorted(saved["pairs"]) == [[number, number] for number in range(4)]
    page.locator("label:has(#turned)").click()
    expect(told).to_have_text("Tries quarter turns and mirrors")
    expect(page.locator("#detail")).to_contain_text("Change them back")
    page.locator("label:has(#turned)").click()
    expect(told).to_have_text("Fits best turned 270° clockwise")  # the switch is back, and so is the match


def test_poor_points_are_left_alone_where_points_were_detected(start) -> None:
    pytest.importorskip("cv2")
    page = start()
    drop(page, ("a.png", encode(TILES)), ("b.png", encode(TILES)))
    await_pictures(page)
    switch = page.locator("#partial")
    expect(switch).not_to_be_checked()
    for side in "ab":
        page.locator(f'.pane[data-side="{side}"] .detect').click()
        expect(page.locator(f'.pane[data-side="{side}"] .point').nth(3)).to_be_visible()
    expect(switch).to_be_checked()
    for partial in (True, False):
        with page.expect_response("**/api/match") as answer:
            page.click("#match")
        assert answer.value.json()["partial"] is partial
        expect(page.locator("#found")).not_to_contain_text("out of date")
        expect(page.locator("#match")).to_have_text("Match")
        if partial:
            switch.uncheck(force=True)
            expect(page.locator("#found")).to_contain_text("out of date")


def test_a_picture_is_zoomed_moved_and_magnified(start) -> None:
    page = start(width=1920)
    drop(page, ("one.png", encode(draw_scene())), target='.pane[data-side="a"]')
    (frame,) = await_pictures(page, "a")
    points, box = page.locator('.pane[data-side="a"] .point'), frame.bounding_box()
    assert box["width"] > 600  # a wide screen is used
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    percent = page.locator('.pane[data-side="a"] .whole')
    for _ in range(4):
        before = percent.inner_text()
        page.mouse.wheel(0, -200)
        expect(percent).not_to_have_text(before)  # two turns that are seen as one zoom less
    expect(page.locator('.pane[data-side="a"] .frame.zoomed')).to_be_visible()
    settle(page)
    assert int(percent.inner_text().split()[0]) > 300
    assert frame.bounding_box() == box
    page.mouse.down()
    page.mouse.move(middle[0] - 90, middle[1] - 60, steps=5)
    page.mouse.up()
    expect(points).to_have_count(0)  # it was moved, not clicked
    page.mouse.click(*middle)
    expect(points).to_have_count(1)
    settle(page)
    zoom = int(percent.inner_text().split()[0]) / 100
    assert page.evaluate(POINT, "a")[0] == pytest.approx(middle, abs=2)
    lens = page.locator('.pane[data-side="a"] .lens')
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + 30, middle[1], steps=3)
    expect(lens).to_be_visible()
    page.mouse.up()
    expect(lens).to_be_hidden()
    percent.click()
    settle(page)
    expect(percent).to_have_text("100 %")
    moved = [90 / zoom + 30 / zoom, 60 / zoom]
    assert page.evaluate(POINT, "a")[0] == pytest.approx([a + b for a, b in zip(middle, moved)], abs=3)
    page.keyboard.press("+")
    expect(percent).to_have_text("150 %")


def test_two_fingers_zoom(start) -> None:
    page = start(width=390, height=844, has_touch=True, is_mobile=True)
    drop(page, ("one.png", encode(draw_scene())), target='.pane[data-side="a"]')
    (frame,) = await_pictures(page, "a")
    frame.scroll_into_view_if_needed()
    settle(page)
    box = frame.bounding_box()
    session = page.context.new_cdp_session(page)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for step in range(6):
        touches = [{"x": x - 20 - 12 * step, "y": y, "id": 0}, {"x": x + 20 + 12 * step, "y": y, "id": 1}]
        kind = "touchMove" if step else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    percent = page.locator('.pane[data-side="a"] .whole')
    wait_until(lambda: int(percent.inner_text().split()[0]) > 200)
    expect(page.locator('.pane[data-side="a"] .point')).to_have_count(0)


def test_points_are_loaded_named_and_saved(start, tmp_path) -> None:
    page = start()
    drop(page, ("one.png", encode(draw_scene())), ("two.png", encode(draw_scene())))
    await_pictures(page)
    table = b"name,x,y\nnose,60,60\near,225,50\nchin,150,140\n"
    for side in "ab":
        chooser = page.locator(f'.pane[data-side="{side}"] .load')
        chooser.set_input_files({"name": "points.csv", "mimeType": "text/csv", "buffer": table})
        expect(page.locator(f'.pane[data-side="{side}"] .point')).to_have_count(3)
    pane = page.locator('.pane[data-side="a"]')
    expect(pane.locator('[data-number="A1 ear"] .tag')).to_have_text("1")
    expect(pane.locator('[data-number="A1 ear"] .tag')).to_be_visible()
    page.click("#match")
    expect(page.locator("#pairs button")).to_have_count(3)
    expect(page.locator("#pairs .note").nth(0)).not_to_be_empty()
    pane.locator(".point").nth(2).focus()
    pane.locator(".naming").fill("jaw")
    expect(page.locator("#found")).to_have_text("3 pairs")  # a name changes no match
    assert json.loads(read_download(page, "#save-json")[1])["names_a"] == ["nose", "ear", "jaw"]
    name, content = read_download(page, '.pane[data-side="a"] .save')
    assert name == "one.points.json"
    (tmp_path / name).write_bytes(content)
    kept = read_keypoints(tmp_path / name)
    assert kept.names == ("nose", "ear", "jaw")
    assert np.allclose(kept.points, [[60, 60], [225, 50], [150, 140]])
    chooser = pane.locator(".load")
    chooser.set_input_files({"name": "bad.csv", "mimeType": "text/csv", "buffer": b"x,y\n1,2\n900,3\n"})
    expect(pane.locator(".fault")).to_contain_text("bad.csv: point 1 at (900, 3) lies outside the 300 × 200 picture")
    expect(pane.locator(".point")).to_have_count(3)
    drop(
        page, ("own.json", json.dumps({"points": [[10, 20]], "box": [0, 0, 99, 99]}).encode()), target='[data-side="a"]'
    )
    expect(pane.locator(".point")).to_have_count(1)
    expect(pane.locator(".crop")).to_be_visible()
    drop(page, ("fly.tps", b"LM=2\n10 180\n60 100\nIMAGE=one.png\n"), target='[data-side="a"]')
    expect(pane.locator(".point")).to_have_count(2)  # a file of points, not a picture


def test_a_reload_asks_before_it_loses_points(start) -> None:
    page = start()
    fill(page)
    asked = []

    def stay(dialog):
        asked.append(dialog.type)
        dialog.dismiss()

    page.once("dialog", stay)
    page.evaluate("setTimeout(() => location.reload())")
    wait_until(lambda: page.evaluate("1") and asked)
    assert asked == ["beforeunload"]
    expect(page.locator(".point")).to_have_count(8)
    for side in "ab":
        read_download(page, f'.pane[data-side="{side}"] .save')
    page.reload()  # nothing is lost any more
    expect(page.locator(".point")).to_have_count(0)


def test_a_model_is_chosen(start) -> None:
    page = start()
    fill(page)
    match(page)
    expect(page.locator("#model")).to_have_value("quick")
    about = page.locator("#about").inner_text()
    page.select_option("#model", "vgg16")
    expect(page.locator("#about")).not_to_have_text(about)
    expect(page.locator("#found")).to_contain_text("out of date")
    match(page)
    assert json.loads(read_download(page, "#save-json")[1])["model"] == "vgg16"


def test_an_example_matches_at_once_and_none_is_cut_off_a_phone(start) -> None:
    pytest.importorskip("skimage")
    page = start(width=390, height=844, has_touch=True, is_mobile=True)
    expect(page.locator(".chip")).to_have_count(5)
    for chip in page.locator(".chip").all():
        box = chip.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    page.locator(".chip").nth(0).click()
    expect(page.locator("#pairs button").nth(0)).to_be_visible()
    expect(page.locator("#why")).to_contain_text("pairs shown")
    page.click("#match")
    expect(page.locator("#results")).to_be_in_viewport()
    wait_until(lambda: page.locator("#results").bounding_box()["y"] < 420)


def test_what_the_slider_hides_is_not_left_alone(start) -> None:
    page = start()
    fill(page)
    match(page)
    scores = sorted(float(text) for text in page.locator("#pairs .value").all_inner_texts())
    page.locator("#threshold").fill(f"{min(scores[-1] + 0.01, 1):.2f}")
    detail = page.locator("#detail")
    expect(detail).to_contain_text("below the least score hidden")
    expect(detail).not_to_contain_text("alone")
    expect(page.locator(".point.alone")).to_have_count(0)


def test_rows_dots_and_names_for_many_and_for_one(start) -> None:
    page = start()
    fill(page)
    match(page)
    before = page.evaluate(HIGH)
    page.evaluate("document.querySelector('#pairs .ends').textContent = 'A123 – B456'")
    assert page.evaluate(HIGH) == before
    ends = page.locator("#pairs .ends").nth(0)
    assert ends.evaluate("one => one.scrollWidth <= one.clientWidth")
    sides = [page.evaluate(LABELS, side) for side in "ab"]
    assert None not in sides[0] + sides[1]
    assert not set(sides[0]) & set(sides[1])
    dot = "one => parseFloat(getComputedStyle(one, '::after').width)"
    pane = page.locator('.pane[data-side="a"]')
    large = pane.locator(".point").nth(0).evaluate(dot)
    for count in (40, 1):
        places = [[7 * n % WIDTH, 11 * n % HEIGHT] for n in range(count)]
        file = {"name": "p.json", "mimeType": "application/json", "buffer": json.dumps(places).encode()}
        for side in "ab":
            page.locator(f'.pane[data-side="{side}"] .load').set_input_files(file)
            expect(page.locator(f'.pane[data-side="{side}"] .point')).to_have_count(count)
        if count > 1:
            wait_until(lambda: pane.locator(".point").nth(0).evaluate(dot) < large)
    page.click("#match")
    expect(page.locator("#live")).to_have_text("1 pair matched.")


def test_few_points_beside_many_are_doubted(start) -> None:
    page = start()
    drop(page, ("one.png", encode(draw_scene())), ("two.png", encode(draw_scene())))
    await_pictures(page)
    many = [[25 * n + 10, 60 + 70 * (n % 2)] for n in range(12)]
    for side, places in (("a", [[140, 90], [150, 96], [146, 104]]), ("b", many)):
        file = {"name": "p.json", "mimeType": "application/json", "buffer": json.dumps(places).encode()}
        page.locator(f'.pane[data-side="{side}"] .load').set_input_files(file)
        expect(page.locator(f'.pane[data-side="{side}"] .point')).to_have_count(len(places))
    doubt = page.locator("#doubt")
    expect(doubt).to_be_hidden()
    page.click("#match")
    expect(doubt).to_contain_text("Picture A: its 3 keypoints span 10 × 14 pixels, the 12 of picture B")
    expect(doubt).not_to_contain_text("--box")
    page.locator('.pane[data-side="b"] .clear').click()
    expect(doubt).to_be_hidden()
    page.locator('.pane[data-side="b"] .undo').click()
    expect(doubt).to_be_visible()
