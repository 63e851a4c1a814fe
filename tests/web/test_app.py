"""The server: every call, every limit, broken files, batches, and who may ask."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from PIL import Image
from ray_cluster import SHARED
from ray_server import start_ray
from starlette.requests import Request as Incoming
from typer.testing import CliRunner
from web_server import LIMITS, PICTURE, build_quick_matcher, encode, match_by, run_server, start_workers, wait_until

import quadmatch.web
from quadmatch.cli import app as command
from quadmatch.datasets.picture import make_picture
from quadmatch.datasets.spans import show_whole
from quadmatch.datasets.turning import turn_picture
from quadmatch.demo.photographs import match_both_ways
from quadmatch.models.load import load
from quadmatch.own_images.answer import read_schema
from quadmatch.own_images.recent import Recent
from quadmatch.web.app import build_app
from quadmatch.web.arrivals import Arrivals
from quadmatch.web.batching import Batcher, Job, match_jobs
from quadmatch.web.budget import Budget
from quadmatch.web.examples import EXAMPLES, make_example
from quadmatch.web.forms import read_form
from quadmatch.web.guard import is_own_name
from quadmatch.web.line import Busy
from quadmatch.web.pace import Pace
from quadmatch.web.uploads import Limits, Refused

POINTS = [[5.0, 6.0], [50.0, 9.5], [30.0, 40.0], [12.0, 33.0], [58.0, 40.0]]
STATIC = Path(quadmatch.web.__file__).parent / "static"
LOCAL = "http://127.0.0.1"


@pytest.fixture(scope="module")
def matcher():
    return build_quick_matcher()


@pytest.fixture(scope="module", params=["alone", "workers", pytest.param("ray", marks=pytest.mark.ray)])
def client(request, matcher):
    """A client of a server within this process, of one that is two processes, or of Ray's."""
    if request.param == "alone":
        with TestClient(build_app(matcher, LIMITS, model="quick"), base_url=LOCAL) as made:
            yield made
    elif request.param == "workers":
        with start_workers() as (address, _), httpx.Client(base_url=address, timeout=60) as made:
            yield made
    else:
        pytest.importorskip("ray.serve")
        # It ends with the cluster, which may be before this fixture does.
        address = SHARED.stack.enter_context(start_ray(SHARED.start().address))
        with httpx.Client(base_url=address, timeout=60) as made:
            yield made


def match(client, a=None, b=None, points_a=POINTS, points_b=POINTS, **fields):
    files = {"image_a": ("ä one.png", a or encode()), "image_b": ("b.png", b or encode())}
    texts = {
        name: p if isinstance(p, str) else json.dumps(p) for name, p in (("points_a", points_a), ("points_b", points_b))
    }
    return client.post("/api/match", files=files, data=texts | fields)


def fault(response, status, code):
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    return error["message"]


def test_a_match_is_the_matchers_own_both_ways(client, matcher) -> None:
    other, goals = encode(PICTURE[:, ::-1]), POINTS[3::-1]
    content = match(client, b=other, points_b=goals).json()
    for constraint, part in ((True, content), (False, content["without_constraint"])):
        own = matcher.match(PICTURE, POINTS, PICTURE[:, ::-1].copy(), goals, constraint=constraint)
        assert part["pairs"] == own.pairs.tolist()
        assert np.allclose(part["scores"], own.scores, atol=1e-5)
        assert part["coordinates"] == [[*POINTS[i], *goals[j]] for i, j in part["pairs"]]
        assert len(part["unmatched_a"]) == 1
        assert part["unmatched_b"] == []
    expected = {tuple(edge) for edge in np.argwhere(np.triu(own.source)).tolist()}
    assert {tuple(edge) for edge in content["edges_a"]} == expected
    assert (content["model"], content["image_a"], content["size_a"]) == ("quick", "ä one.png", [64, 48])
    assert (content["points_a"], content["points_b"]) == (POINTS, goals)
    Draft202012Validator(read_schema("matches")).validate(content)


def test_pairs_go_through_the_network_once_for_both_answers(matcher) -> None:
    passes = []
    hook = matcher.head.register_forward_hook(lambda *_: passes.append(1))
    one = make_picture(PICTURE, POINTS)
    try:
        for partial in (False, True):
            answers = match_jobs(matcher, [Job(one, one, partial), Job(one, one, partial)], Recent(0), Pace())
            assert all(len(answer.free.pairs) for answer in answers)
    finally:
        hook.remove()
    assert len(passes) == 2


def test_few_points_beside_many_are_also_seen_whole(matcher) -> None:
    random = np.random.default_rng(1)
    pixels, many = random.integers(0, 256, (96, 96, 3), dtype=np.uint8), random.uniform(4, 92, (12, 2))
    few = make_picture(pixels, many[np.argsort(((many - 48) ** 2).sum(1))[:3]], name="image_a")
    pictures = [few, make_picture(pixels, many, name="image_b")]
    whole = [show_whole(one) for one in pictures]
    plain = make_picture(PICTURE, POINTS)
    jobs = [Job(plain, plain), Job(*pictures), Job(*pictures, True), Job(*whole)]
    answers = match_jobs(matcher, jobs, Recent(0), Pace())
    for partial, answer in zip((False, True), answers[1:]):
        for constraint, found in zip((True, False), answer):
            own = matcher.match_pictures(pictures, [0], [1], partial=partial, constraint=constraint)[0]
            assert found.pairs.tolist() == own.pairs.tolist()
            assert found.objective == pytest.approx(own.objective, abs=1e-5)
    assert answers[1].constrained.objective <= answers[3].constrained.objective + 1e-6


@settings(max_examples=8)
@given(st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_any_numbers_of_points_get_an_answer(client, rows, columns, partial) -> None:
    fields = {"partial": "true"} if partial else {}
    content = match(client, points_a=POINTS[:1] * rows, points_b=POINTS[:columns], **fields).json()
    assert len(content["pairs"]) + len(content["unmatched_a"]) == rows
    assert len(content["pairs"]) + len(content["unmatched_b"]) == columns


def test_points_are_read_with_care(client) -> None:
    for bad in (
        "",
        "nothing",
        "[[1,2,3]]",
        "[[NaN, 1]]",
        "[[1e999, 1]]",
        "[[1]]",
        '{"a": 1}',
        "[" * 9999,
        f"[[{'9' * 400}, 1]]",
    ):
        assert "points_a" in fault(match(client, points_a=bad), 400, "bad-points")
    message = fault(match(client, points_b=[[1, 1], [65, 3]]), 400, "point-outside")
    assert "point 1 at (65, 3)" in message
    assert "64 × 48" in message
    message = fault(match(client, points_a=[[1, 1]] * 51), 413, "too-many-points")
    assert "at most 50" in message
    assert "51" in message
    fault(match(client, partial="perhaps"), 400, "bad-switch")


def test_every_kind_of_picture_is_read(client) -> None:
    alpha = Image.fromarray(np.dstack([PICTURE, PICTURE[..., :1]]))
    sixteen = Image.fromarray(PICTURE[..., 0].astype(np.uint16) * 257)
    animation = {"save_all": True, "append_images": [Image.fromarray(255 - PICTURE)]}
    files = [encode(), encode(format="JPEG"), encode(format="WEBP"), encode(format="BMP"), encode(alpha)]
    files += [encode(sixteen), encode(sixteen, "TIFF"), encode(format="GIF", **animation)]
    files += [encode(Image.fromarray(PICTURE).convert("CMYK"), "JPEG"), encode(alpha, "TIFF")]
    for file in files:
        shown = client.post("/api/picture", files={"image": file})
        assert shown.status_code == 200, shown.text
        assert shown.headers["content-type"] == "image/jpeg"
        assert (shown.headers["x-picture-width"], shown.headers["x-picture-height"]) == ("64", "48")
        assert len(match(client, a=file).json()["pairs"]) == 5


def test_a_turned_picture_has_upright_coordinates(client) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by a quarter
    turned = encode(exif=exif)
    shown = client.post("/api/picture", files={"image": turned})
    assert (shown.headers["x-picture-width"], shown.headers["x-picture-height"]) == ("48", "64")
    low = [[5, 60], [40, 10]]
    assert match(client, a=turned, points_a=low).json()["size_a"] == [48, 64]
    assert "48 × 64" in fault(match(client, a=turned), 400, "point-outside")


def test_what_is_no_picture_is_refused(client) -> None:
    photograph = np.kron(np.arange(120).reshape(10, 12), np.ones((12, 12))).astype(np.uint8)
    cut = encode(photograph, "JPEG")[:-400]
    for path, fields in (
        ("/api/picture", ["image"]),
        ("/api/detect", ["image"]),
        ("/api/match", ["image_a", "image_b"]),
    ):

        def post(content, path=path, fields=fields):
            return client.post(path, files=dict.fromkeys(fields, ("x.png", content)))

        assert f"{fields[0]}: this is not a picture" in fault(post(b"text"), 415, "not-a-picture")
        assert "damaged" in fault(post(cut), 415, "broken-picture")
        assert "damaged" in fault(post(encode()[:200]), 415, "broken-picture")
        assert "empty" in fault(post(b""), 400, "empty-file")
        assert "at most 0.04 million pixels" in fault(post(encode(Image.new("1", (300, 200)))), 413, "too-many-pixels")
        noise = encode(np.random.default_rng(1).integers(0, 256, (160, 160, 3), dtype=np.uint8), "BMP")
        assert "MB" in fault(post(noise), 413, "too-large")
        fault(client.post(path, files={"other": b"x"}), 400, "no-file")
        fault(client.post(path, data={fields[0]: "text"}), 415, "not-multipart")
        fault(client.post(path, headers={"content-type": "multipart/form-data"}, content=b"x"), 400, "bad-form")
    bomb = b"P6 60000 60000 255\n" + b"x" * 100
    fault(client.post("/api/picture", files={"image": bomb}), 413, "too-many-pixels")


@settings(max_examples=25)
@given(st.integers(0, 400), st.binary(min_size=1, max_size=6), st.sampled_from(["PNG", "JPEG", "GIF", "TIFF"]))
def test_damage_gets_a_picture_or_a_refusal(client, place, junk, format) -> None:
    content = bytearray(encode(PICTURE[:16, :16], format))
    place %= len(content)
    content[place : place + len(junk)] = junk
    response = client.post("/api/picture", files={"image": bytes(content)})
    assert response.status_code in (200, 413, 415)


def read(chunks, limits):
    """What `read_form` makes of a body that comes in chunks; None is a chunk that does not come."""
    left = iter(chunks)

    async def receive():
        chunk = next(left, b"")
        if chunk is None:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": chunk, "more_body": bool(chunk)}

    header = (b"content-type", b"multipart/form-data; boundary=b")
    incoming = Incoming({"type": "http", "headers": [header]}, receive)
    return asyncio.run(read_form(incoming, Arrivals(limits), files=1))


def test_too_much_is_refused_before_it_is_read(client) -> None:
    def pour():
        for number in range(100):
            assert number < 30, "it was read far beyond the limit"
            yield b"x" * 100_000

    start = b'--b\r\nContent-Disposition: form-data; name="image"; filename="x"\r\n\r\n'
    with pytest.raises(Refused) as refusal:
        read(chain([start], pour()), LIMITS)
    assert refusal.value.status == 413
    for limits, reason in (
        (Limits(seconds=0.05), r"took longer than 0\.05 s"),
        (Limits(pause=0.05), r"No bytes came for 0\.05 s"),
    ):
        with pytest.raises(Refused, match=reason) as refusal:
            read([start, None], limits)
        assert refusal.value.status == 408
    large = np.random.default_rng(0).bytes(3 * 2**20)
    form = read([start, large, b"\r\n--b--\r\n"], Limits())
    assert not form["image"].file._rolled  # else it would lie in a temporary file
    if isinstance(client, TestClient):  # Others do not send a length that is not that of the content.
        boundary = {"content-type": "multipart/form-data; boundary=b", "content-length": str(10**12)}
        fault(client.post("/api/picture", content=b"", headers=boundary), 413, "too-large")
    files = [(name, b"x") for name in ("image_a", "image_b", "image_c")]
    fault(client.post("/api/match", files=files), 400, "bad-form")
    fault(client.post("/api/match", data={"points_a": "x" * 300_000}, files={"image_a": b"x"}), 400, "bad-form")


def test_detection_finds_points_in_the_picture(client) -> None:
    pytest.importorskip("cv2")
    squares = np.kron(np.eye(4) > 0, np.ones((30, 30))).astype(np.uint8) * 200
    response = client.post("/api/detect", files={"image": encode(squares)}, data={"count": "6"})
    points = np.array(response.json()["points"])
    assert 0 < len(points) <= 6
    assert ((points >= 0) & (points <= 120)).all()
    for count in ("0", "51", "many", "1e3"):
        response = client.post("/api/detect", files={"image": encode()}, data={"count": count})
        assert "from 1 to 50" in fault(response, 400, "bad-number")


def test_examples_have_truth_that_fits(client) -> None:
    pytest.importorskip("skimage")
    status = client.get("/api/status").json()
    assert status["limits"]["points"] == 50
    name = status["examples"][0]["name"]
    example = client.get(f"/api/examples/{name}").json()
    count = len(example["points_a"])
    assert count > 9
    assert sorted(i for i, _ in example["truth"]) == sorted(j for _, j in example["truth"]) == list(range(count))
    for side in "ab":
        picture = client.get(f"/api/examples/{name}/{side}.png")
        assert picture.headers["content-type"] == "image/png"
        assert picture.content.startswith(b"\x89PNG")
    fault(client.get("/api/examples/nothing"), 404, "no-example")
    fault(client.get(f"/api/examples/{name}/c.png"), 404, "no-example")


def test_examples_lie_on_plain_paper_and_mirror_nothing() -> None:
    pytest.importorskip("skimage")
    for name in EXAMPLES:
        pair = make_example(name)
        for view, picture in zip(pair.views, (pair.picture_a, pair.picture_b)):
            centres = (np.arange(view.size) + 0.5) * 2 / view.size - 1
            grid = np.stack(np.meshgrid(centres, centres), -1).reshape(-1, 2)
            outside = (np.abs(view.warp.apply(grid)) > 1.02).any(1)
            if outside.any():
                assert picture.reshape(-1, 3)[outside].std(0).max() < 12, name  # but for the light's noise


@pytest.mark.slow
def test_in_most_examples_the_constraint_shows() -> None:
    pytest.importorskip("skimage")
    gained = {}
    matcher, pairs = load(), {name: make_example(name) for name in EXAMPLES}
    for (name, pair), *ways in zip(pairs.items(), *match_both_ways(matcher, [*pairs.values()])):
        right, before = (pair.count_right(np.asarray(result.pairs)) for result in ways)
        gained[name] = right - before
        assert right >= 0.9 * len(pair.truth), name
    assert sum(gain >= 3 for gain in gained.values()) >= 3, gained


def test_what_arrives_together_is_matched_together_and_alike(matcher, monkeypatch) -> None:
    pairs = [
        (make_picture(PICTURE, POINTS[: 2 + n % 4], None, "a"), make_picture(PICTURE[::-1].copy(), POINTS, None, "b"))
        for n in range(7)
    ]
    alone = [matcher.match(a.image, a.keypoints.points, b.image, b.keypoints.points) for a, b in pairs]
    gate, prepare = threading.Event(), matcher.prepare
    monkeypatch.setattr(matcher, "prepare", lambda requests: gate.wait(120) and prepare(requests))
    batcher = Batcher(matcher, largest=6, waiting=20, seconds=600.0)

    async def ask():
        first = asyncio.ensure_future(match_by(batcher, *pairs[0]))
        while not sum(batcher.batches):
            await asyncio.sleep(0.01)
        rest = [asyncio.ensure_future(match_by(batcher, *pair, partial=n == 2)) for n, pair in enumerate(pairs)]
        leaving = asyncio.ensure_future(match_by(batcher, *pairs[0]))
        await asyncio.sleep(0.05)
        leaving.cancel()
        await asyncio.wait([leaving])  # else the worker may come to it first
        gate.set()
        return [await first, *[await one for one in rest]][1:]

    answers = asyncio.run(ask())
    batcher.close()
    # One alone, then six and the last one; who left was dropped.
    assert (batcher.batches[6], batcher.batches[1], sum(batcher.batches)) == (1, 2, 3)
    for n, (answer, one) in enumerate(zip(answers, alone)):
        assert np.allclose(answer.constrained.assignment, one.assignment, atol=1e-5)
        if n != 2:
            assert np.array_equal(answer.constrained.pairs, one.pairs)


def test_one_bad_pair_spares_its_batch_mates(matcher, monkeypatch) -> None:
    gate, prepare = threading.Event(), matcher.prepare
    monkeypatch.setattr(matcher, "prepare", lambda requests: gate.wait(120) and prepare(requests))
    batcher = Batcher(matcher)
    good, bad = make_picture(PICTURE, POINTS), make_picture(PICTURE, POINTS, (900, 900, 950, 950))

    async def ask():
        tasks = [asyncio.ensure_future(match_by(batcher, one, good)) for one in (good, good, bad, good)]
        await asyncio.sleep(0.05)
        gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = asyncio.run(ask())
    batcher.close()
    assert [isinstance(one, ValueError) for one in answers] == [False, False, True, False]


def test_a_full_queue_and_a_late_answer_are_503(matcher, monkeypatch) -> None:
    gate, prepare = threading.Event(), matcher.prepare
    monkeypatch.setattr(matcher, "prepare", lambda requests: gate.wait(120) and prepare(requests))
    good = make_picture(PICTURE, POINTS)
    batcher = Batcher(matcher, largest=1, waiting=1, seconds=600.0)

    async def ask():
        first = asyncio.ensure_future(match_by(batcher, good, good))
        while not sum(batcher.batches):  # until the worker has taken it from the queue
            await asyncio.sleep(0.001)
        second = asyncio.ensure_future(match_by(batcher, good, good))
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="Too many"):
            await match_by(batcher, good, good)
        for one in (first, second):
            one.cancel()
        await asyncio.wait([first, second])

    asyncio.run(ask())
    app = build_app(matcher, Limits(seconds=600.0, clients=1))
    service = app.state.service
    with TestClient(app, base_url=LOCAL) as slow, ThreadPoolExecutor() as pool:
        service.batcher.line.seconds = 0.5  # The gate is shut: no answer is ever in time.
        assert "within 0.5 s" in fault(match(slow), 503, "busy")
        service.batcher.line.seconds = 600.0
        first = pool.submit(match, slow)
        wait_until(lambda: service.clients)
        refused = slow.post("/api/picture", files={"image": encode()})
        assert "is busy" in fault(refused, 503, "busy")  # there was no room for it
        assert int(refused.headers["retry-after"]) > 0
        gate.set()
        assert first.result().status_code == 200
    batcher.close()
    wait_until(lambda: not batcher._thread.is_alive())


def ask_and_leave(address, files, reached) -> None:
    """A client that asks for a match, and goes away once it is reached."""

    async def ask():
        async with httpx.AsyncClient(timeout=60) as client:
            call = asyncio.ensure_future(client.post(f"{address}/api/match", files=files))
            while not reached():
                assert not call.done()
                await asyncio.sleep(0.01)
            call.cancel()
            await asyncio.wait([call])

    asyncio.run(ask())


def test_a_client_that_leaves_is_dropped(matcher, monkeypatch) -> None:
    gate, prepare = threading.Event(), matcher.prepare
    monkeypatch.setattr(matcher, "prepare", lambda requests: gate.wait(120) and prepare(requests))
    app = build_app(matcher, LIMITS)
    service = app.state.service
    with run_server(app) as address:
        files = {"image_a": encode(), "image_b": encode()}
        # One whose match has begun, and one that waits behind it.
        for reached in (lambda: sum(service.batcher.batches), service.batcher._jobs.__len__):
            ask_and_leave(address, files, reached)
            wait_until(lambda: not service.clients and not service.pixels.held)
        gate.set()
        assert httpx.post(f"{address}/api/match", files=files, timeout=60).status_code == 200
    assert service.clients == 0
    assert service.pixels.held == 0
    assert sum(service.batcher.batches) == 2


def test_a_failure_is_named_but_not_shown(matcher, monkeypatch) -> None:
    def fail(requests):
        raise RuntimeError("secret place")

    monkeypatch.setattr(matcher, "prepare", fail)
    with TestClient(build_app(matcher), base_url=LOCAL) as client:
        response = match(client)
        assert "secret" not in fault(response, 500, "failed")
        assert response.headers["x-content-type-options"] == "nosniff"


def test_the_budget_is_never_passed() -> None:
    async def hold():
        budget, most = Budget(10), 0

        async def use(amount):
            nonlocal most
            async with budget.hold(amount):
                most = max(most, budget.held)
                await asyncio.sleep(0.001)

        await asyncio.gather(*[use(amount) for amount in (3, 4, 20, 1, 9, 2, 10)])
        return most, budget.held

    assert asyncio.run(hold()) == (10, 0)


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/static/page.js", "/api/status", "/nothing"])
def test_headers_keep_other_sites_out(client, path) -> None:
    response = client.get(path)
    assert response.status_code == (404 if path == "/nothing" else 200)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in response.headers
    assert response.headers["cache-control"]


def test_foreign_names_and_origins_are_refused(client) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "", "192.168.1.5", "[::2]", "["):
        fault(client.get("/api/status", headers={"host": host}), 403, "foreign-request")
    for host in ("localhost:8420", "127.0.0.1", "[::1]:99"):
        assert client.get("/api/status", headers={"host": host}).status_code == 200
    foreign = [{"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://127.0.0.1:99"}]
    foreign += [{"origin": "http://[bad"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}]
    for headers in foreign:
        response = client.post("/api/picture", files={"image": encode()}, headers=headers)
        fault(response, 403, "foreign-request")
    own = {"origin": str(client.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
    assert client.post("/api/picture", files={"image": encode()}, headers=own).status_code == 200


def test_names_of_a_server_that_others_may_reach() -> None:
    assert is_own_name("192.168.1.5", "0.0.0.0")
    assert is_own_name("box.example", "box.example")
    assert is_own_name(socket.gethostname().lower(), "0.0.0.0")
    assert not is_own_name("evil.example", "0.0.0.0")
    assert not is_own_name("", "")
    assert not is_own_name("192.168.1.5", "localhost")


def test_static_files_name_no_outside_host() -> None:
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    assert {".html", ".css", ".js", ".svg"} <= {path.suffix for path in files}
    for path in files:
        text = path.read_text(encoding="utf-8")
        hosts = set(re.findall(r"(?:https?:)?//([\w.-]+\.[a-z]{2,})", text)) - {"www.w3.org"}
        assert not hosts, path
        assert len(text.splitlines()) <= 250, path
        if path.suffix == ".html":
            assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*src=)", text), path


def test_the_description_lists_every_call(client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {
        "/api/status",
        "/api/examples/{name}",
        "/api/examples/{name}/{side}.png",
        "/api/picture",
        "/api/points",
        "/api/detect",
        "/api/match",
    }
    form = paths["/api/match"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    sides = {f"{field}_{side}" for field in ("image", "points", "names", "box") for side in "ab"}
    assert set(form["properties"]) == {*sides, "partial", "orientation", "model"}
    answer = paths["/api/match"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    # Models without matchability leave it out.
    assert set(answer["properties"]) - {"matchable"} <= set(match(client).json())


def test_a_turned_picture_is_found_out_where_that_is_asked(client) -> None:
    turned = turn_picture(make_picture(PICTURE, POINTS), "mirror-90")
    given = {"b": encode(turned.image), "points_b": turned.keypoints.points.tolist()}
    answer = match(client, orientation="auto", **given).json()
    Draft202012Validator(read_schema("matches")).validate(answer)
    assert (answer["orientation"], answer["orientation_asked"]) == ("mirror-90", "auto")
    assert answer["without_constraint"]["orientation"] == "mirror-90"
    assert answer["points_b"] == given["points_b"]
    assert answer["pairs"] == [[number, number] for number in range(len(POINTS))]
    assert match(client, orientation="mirror-90", **given).json()["pairs"] == answer["pairs"]
    assert match(client, **given).json()["orientation"] == "0"
    fault(match(client, orientation="45"), 400, "bad-orientation")


def test_pairs_of_a_batch_are_each_turned_as_asked(matcher) -> None:
    picture = make_picture(PICTURE, POINTS)
    turned = turn_picture(picture, "90")
    jobs = [Job(picture, turned, orientation=asked) for asked in ("auto", "0", "180")]
    assert [one.constrained.orientation for one in match_jobs(matcher, jobs, Recent(), Pace())] == ["270", "0", "180"]


def test_the_command_says_what_is_wrong(monkeypatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(command, ["serve", "--port", port, "--no-open"])
    assert result.exit_code == 1
    assert f"port {port}" in result.output
    assert "--port" in result.output
    result = CliRunner().invoke(command, ["serve", "--model", "nothing", "--port", "0", "--no-open"])
    assert result.exit_code == 1
    assert "'nothing' is neither" in result.output
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "quadmatch.web.serving", raising=False)
    result = CliRunner().invoke(command, ["serve"])
    assert result.exit_code == 1
    assert "pip install fastapi" in result.output


def test_the_command_serves_after_a_first_match(matcher, monkeypatch) -> None:
    import uvicorn

    from quadmatch.web import serving

    seen, prepare = [], matcher.prepare
    monkeypatch.setattr(serving, "load", lambda model: matcher)
    monkeypatch.setattr(matcher, "prepare", lambda requests: seen.append(1) or prepare(requests))
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: seen.append(sockets[0].getsockname()))
    result = CliRunner().invoke(command, ["serve", "--port", "0", "--no-open"])
    assert result.exit_code == 0, result.output
    assert seen[-1][0] == "127.0.0.1"
    assert len(seen) > 1
    assert f"http://127.0.0.1:{seen[-1][1]}/" in result.output


def test_the_benchmark_counts_what_is_answered(matcher, monkeypatch) -> None:
    from quadmatch.bench import serving

    bodies = [serving.make_body(client) for client in range(2)]  # made before the time runs
    monkeypatch.setattr(serving, "make_body", lambda client: bodies[client])
    with run_server(build_app(matcher, Limits())) as address:
        port = int(address.rpartition(":")[2])
        durations, faults = serving.press(port, 2, 0.5)
        assert (len(durations) >= 2, faults) == (True, [])
        batches = serving.call(port, "/api/status")[1]["batches"]
        assert sum(size * count for size, count in enumerate(batches)) == len(durations)
        monkeypatch.setattr(serving, "make_body", lambda client: (b"x", "text/plain"))
        durations, faults = serving.press(port, 1, 0.5)
        assert durations == []
        assert "not-multipart" in faults[0]


def test_the_benchmark_sends_each_pair_twice(matcher) -> None:
    from quadmatch.bench import again

    with run_server(build_app(matcher, Limits())) as address:
        first, second, pictures = again.measure(int(address.rpartition(":")[2]), 2)
    assert (len(first), len(second), pictures) == (2, 2, [4, 4])
