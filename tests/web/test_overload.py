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
from web_server import PICTURE, build_quick_matcher, encode, run_server, wait_until

from quadmatch.datasets.picture import make_picture
from quadmatch.web import connections
from quadmatch.web.app import build_app
from quadmatch.web.batching import Batcher, Busy
from quadmatch.web.uploads import Limits

POINTS = [[5.0, 6.0], [50.0, 9.5], [30.0, 40.0]]
HALF = b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n"


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
    head = "POST /api/picture HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90000\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
    with caplog.at_level(logging.WARNING), run_server(app) as address:
        one = connect(address, head.encode())
        wait_until(lambda: app.state.service.clients)
        one.close()
        wait_until(lambda: not app.state.service.clients)
    assert "Traceback" not in caplog.text
    assert "failed" not in caplog.text


def test_who_would_wait_too_long_is_told_at_once(matcher, gate) -> None:
    app = build_app(matcher, Limits(seconds=100.0))
    service = app.state.service
    files = {"image_a": encode(), "image_b": encode()}
    with TestClient(app, base_url="http://127.0.0.1") as client, ThreadPoolExecutor() as pool:
        first = pool.submit(client.post, "/api/match", files=files)
        wait_until(lambda: service.matches)
        service.batcher.pace = 130.0
        refused = client.post("/api/match", files=files)  # while the first has not even begun
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "30"
        assert "130 s" in refused.json()["error"]["message"]
        gate.set()
        assert first.result().status_code == 200
        wait_until(lambda: 0 < service.batcher.pace < 130)  # measured after the answer has gone out


def test_the_end_does_not_wait_for_a_job_whose_client_is_gone(matcher, gate) -> None:
    batcher = Batcher(matcher, largest=1)
    picture = make_picture(PICTURE, POINTS)

    async def ask_and_leave():
        first = asyncio.ensure_future(batcher.match(picture, picture))
        while not sum(batcher.batches):
            await asyncio.sleep(0.01)
        first.cancel()
        waiting = asyncio.ensure_future(batcher.match(picture, picture))
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
