"""The server under clients that are slow, too many, or gone."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fastapi.testclient import TestClient
from web_server import PICTURE, build_quick_matcher, encode, match_by, run_server, wait_until

from quadmatch.datasets.picture import make_picture
from quadmatch.web import connections
from quadmatch.web.app import build_app
from quadmatch.web.batching import Batcher
from quadmatch.web.line import Busy, Line
from quadmatch.web.pace import MEMORY, Cost, Pace, Rate, measure_cost
from quadmatch.web.uploads import Limits

POINTS = [[5.0, 6.0], [50.0, 9.5], [30.0, 40.0]]
HALF = b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HEAD = (
    b"POST /api/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90000\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\n\r\n"
)
"""A whole header, behind which a body should come."""


@pytest.fixture(scope="module")
def matcher():
    return build_quick_matcher()


@pytest.fixture
def gate(matcher, monkeypatch):
    """No match goes on until it is opened."""
    made, prepare = threading.Event(), matcher.prepare
    monkeypatch.setattr(matcher, "prepare", lambda requests: made.wait(120) and prepare(requests))
    yield made
    made.set()


def connect(address, content=HALF):
    """A connection on which something was sent."""
    host, _, port = address.removeprefix("http://").partition(":")
    made = socket.create_connection((host, int(port)), timeout=60)
    made.sendall(content)
    return made


def is_open(connection):
    """Whether the server has closed a connection."""
    connection.setblocking(False)
    try:
        return connection.recv(1000, socket.MSG_PEEK) == b"never"
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_a_header_that_does_not_come_is_not_awaited(matcher, monkeypatch) -> None:
    with run_server(build_app(matcher)) as address:
        # Half a header, none at all, and half a second one after a whole first.
        again = connect(address, HALF + b"\r\n")
        assert b"200 OK" in again.recv(100)
        monkeypatch.setattr(connections, "PATIENCE", 1.0)
        again.sendall(HALF)
        slow = [connect(address), connect(address, b""), again]
        for one in slow:
            answer = b""
            while chunk := one.recv(10_000):  # until the server closes it
                answer += chunk
            assert answer.endswith(connections.FAREWELL)
            one.close()


def test_half_sent_headers_keep_nobody_out(matcher, monkeypatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 600.0)
    with run_server(build_app(matcher)) as address:
        slow = [connect(address) for _ in range(210)]
        assert httpx.get(f"{address}/api/status", timeout=60).status_code == 200
        wait_until(lambda: sum(map(is_open, slow)) <= connections.UNHEARD)
        assert is_open(slow[-1])  # the oldest made room
        for one in slow:
            one.close()


def test_an_aborted_upload_is_no_failure(matcher, caplog) -> None:
    app = build_app(matcher)
    with caplog.at_level(logging.WARNING), run_server(app) as address:
        one = connect(address, HEAD % b"picture" + b"--b\r\n")
        wait_until(lambda: app.state.service.arrivals.open)
        one.close()
        wait_until(lambda: not app.state.service.arrivals.open)
    assert "Traceback" not in caplog.text
    assert "failed" not in caplog.text


def test_bodies_that_do_not_come_keep_nobody_out(matcher) -> None:
    app = build_app(matcher, Limits(pause=600.0, seconds=600.0, uploads=30))
    arrivals = app.state.service.arrivals
    with run_server(app) as address:
        slow = [connect(address, HEAD % name) for name in (b"match", b"detect") for _ in range(12)]
        wait_until(lambda: len(arrivals.open) == 24)
        files = {"image_a": encode(), "image_b": encode()}
        assert httpx.post(f"{address}/api/match", files=files, timeout=60).status_code == 200
        assert all(map(is_open, slow))
        slow += [connect(address, HEAD % b"match") for _ in range(200)]
        wait_until(lambda: sum(map(is_open, slow)) <= 30)  # who was silent for longest made room
        assert httpx.post(f"{address}/api/match", files=files, timeout=60).status_code == 200
        assert b"408" in slow[0].recv(100)
        for one in slow:
            one.close()


def test_who_would_wait_too_long_is_told_at_once(matcher, gate) -> None:
    app = build_app(matcher, Limits(seconds=1000.0))
    service = app.state.service
    files = {"image_a": encode(), "image_b": encode()}
    many = [[float(n), n * n % 47.0] for n in range(40)]
    cost_of_many = measure_cost(make_picture(None, many), make_picture(None, many), "0")
    heavy = {"points_a": json.dumps(many), "points_b": json.dumps(many)}
    with TestClient(app, base_url="http://127.0.0.1") as client, ThreadPoolExecutor() as pool:
        gate.set()
        assert client.post("/api/match", files=files).status_code == 200  # a light one, which says little
        wait_until(lambda: not service.clients and not service.batcher.line.find_wait())
        gate.clear()
        service.batcher.find_pace(None).expect = lambda cost: 600 * cost.small / cost_of_many.small
        first = pool.submit(client.post, "/api/match", files=files, data=heavy)
        wait_until(lambda: sum(service.batcher.batches) == 2)
        refused = client.post("/api/match", files=files, data=heavy)  # while the first is not done
        assert refused.status_code == 503
        assert 300 < int(refused.headers["retry-after"]) <= 600
        assert "take about" in refused.json()["error"]["message"]
        light = pool.submit(client.post, "/api/match", files=files, data={"points_a": "[]", "points_b": "[]"})
        turned = client.post("/api/match", files=files, data={"orientation": "auto"})
        assert turned.status_code == 503  # it is tried eight times
        gate.set()
        assert [first.result().status_code, light.result().status_code] == [200, 200]


def test_who_is_behind_one_that_ran_out_of_time_is_told_at_once() -> None:
    async def wait(line, pace, seen):
        async with line.join(Cost(1.0), pace):
            seen.append("in")
            await asyncio.sleep(600)

    async def stand():
        line, pace, seen = Line(600.0, 9), Pace(), []
        waiting = [asyncio.ensure_future(wait(line, pace, seen)) for _ in range(3)]
        while len(seen) < 3:
            await asyncio.sleep(0)
        line.begin(line.places[:1])
        pace.expect = lambda cost: 500 * cost.pictures  # it turns out to take so long
        line.places[0].patience.reschedule(0.0)
        for one in waiting:
            with pytest.raises(Busy, match="within 600 s") as refusal:
                await asyncio.wait_for(one, 60)
            assert refusal.value.seconds > 300
        assert line.places == []
        with pytest.raises(Busy, match=r"take about \d+ s"):
            line.check(200.0)
        line.end()
        line.check(1e9)  # one that comes alone is tried

    asyncio.run(stand())


def test_no_batch_makes_one_of_its_pairs_late(matcher, gate) -> None:
    batcher = Batcher(matcher, seconds=600.0)
    picture = make_picture(PICTURE, POINTS)
    allowed = []

    async def ask():
        first = asyncio.ensure_future(match_by(batcher, picture, picture))
        while not sum(batcher.batches):
            await asyncio.sleep(0.01)
        rest = [asyncio.ensure_future(match_by(batcher, picture, picture)) for _ in range(3)]
        while len(batcher._jobs) < 3:
            await asyncio.sleep(0.01)
        early, *others = (place for place in batcher.line.places if not place.begun)
        early.deadline -= 598.5  # time for itself, and not for a hundred others
        allowed.extend(batcher.line.have_time(places) for places in (others * 50, [early, *others * 50]))
        early.deadline += 598.5
        batcher.line.have_time = lambda places: len(places) < 3
        gate.set()
        await asyncio.gather(first, *rest)

    asyncio.run(asyncio.wait_for(ask(), 120))
    batcher.close()
    assert allowed == [True, False]
    assert batcher.batches[:3] == [0, 2, 1]


def test_costs_follow_the_work() -> None:
    def make(count):
        return make_picture(None, [[float(n), n * n % 47.0] for n in range(count)])

    light, heavy = (measure_cost(make(count), make(count), "0") for count in (10, 200))
    assert light.pictures == heavy.pictures == 2
    assert heavy.small > 50 * light.small
    assert measure_cost(make(10), make(10), "auto") == Cost(9.0, 8 * light.small)
    assert measure_cost(make(400), make(400), "0").small == 0
    pace = Pace()
    for _ in range(9):
        pace.add(light, 0.1)
        pace.add(heavy, 40.0)
    assert 30 < pace.expect(heavy) < 50
    rate = Rate(1.0)
    rate.add(1e9, 1.0)
    assert rate.estimate() < 1e-8
    rate.add(1.0, 1e6)
    assert rate.seconds <= MEMORY


def test_what_was_not_measured_is_as_slow_as_the_rest() -> None:
    heavy = Cost(0.0, 1e6)
    slow, quick = Pace(), Pace()
    before = slow.expect(heavy)
    slow.add(Cost(10.0), 400.0)
    assert slow.expect(heavy) > 5 * before
    quick.add(Cost(10.0), 1e-3)
    assert quick.expect(heavy) == before


def test_the_end_does_not_wait_for_a_job_whose_client_is_gone(matcher, gate) -> None:
    batcher = Batcher(matcher, largest=1)
    picture = make_picture(PICTURE, POINTS)

    async def ask_and_leave():
        first = asyncio.ensure_future(match_by(batcher, picture, picture))
        while not sum(batcher.batches):
            await asyncio.sleep(0.01)
        first.cancel()
        waiting = asyncio.ensure_future(match_by(batcher, picture, picture))
        await asyncio.sleep(0.01)
        ending = threading.Thread(target=batcher.close)
        ending.start()
        with pytest.raises(Busy, match="about to end"):
            await waiting
        while ending.is_alive():
            await asyncio.sleep(0.01)
        assert not gate.is_set()

    asyncio.run(asyncio.wait_for(ask_and_leave(), 60))
    gate.set()
    wait_until(lambda: not batcher._thread.is_alive())


def test_other_models_are_loaded_when_they_are_asked_for(matcher, monkeypatch) -> None:
    asked = []

    def load(name):
        asked.append(name)
        return build_quick_matcher()

    app = build_app(matcher, model="default", load=load)
    files = {"image_a": encode(), "image_b": encode()}
    points = {f"points_{side}": json.dumps(POINTS) for side in "ab"}
    with TestClient(app, base_url="http://127.0.0.1") as client:
        status = client.get("/api/status").json()
        names = [one["name"] for one in status["models"]]
        assert {"default", "vgg16"} <= set(names)
        assert all(one["about"].endswith(".") for one in status["models"])
        for model in ("vgg16", "vgg16", names[-2], "default"):
            answer = client.post("/api/match", files=files, data={**points, "model": model}).json()
            assert answer["model"] == model
            assert len(answer["pairs"]) == 3
            assert len(app.state.service.shelf.loaded) <= 2
        refused = client.post("/api/match", files=files, data={"model": "../etc"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "no-model")
    assert asked[0] == "vgg16"
    assert asked.count("vgg16") == 1
