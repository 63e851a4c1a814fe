"""A storage on this machine that answers as S3 and as a web server do, and refuses what is under `closed/`."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serve_objects(objects: Mapping[str, bytes]) -> Iterator[str]:
    """Within: a server of the objects by name; its address. S3 asks it for `/bucket/name`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def do_HEAD(self) -> None:
            self.answer(False)

        def do_GET(self) -> None:
            self.answer(True)

        def answer(self, whole: bool) -> None:
            name = self.path.partition("?")[0].lstrip("/").removeprefix("bucket/")
            content, start, end = objects.get(name, b""), 0, len(objects.get(name, b"")) - 1
            status = 403 if name.startswith("closed/") else 200 if name in objects else 404
            if status == 200 and (wanted := self.headers.get("Range")):
                first, _, last = wanted.partition("=")[2].partition("-")
                status, start, end = 206, int(first), min(end, int(last or end))
            content = content[start : end + 1] if status < 300 else b""
            self.send_response(status)
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{end}/{len(objects[name])}")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Last-Modified", "Tue, 17 Nov 2026 22:00:00 GMT")
            self.end_headers()
            if whole:
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
