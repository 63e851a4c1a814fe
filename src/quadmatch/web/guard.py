"""Keeps other sites out: who may ask under which name, and headers that say what the page may load."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob: data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Around an app: refuses names and origins that are not this server's own, and adds `HEADERS`.

    A site that lets its name point to this machine (DNS rebinding) still sends that name as the host, and a
    form or a script of another site sends its origin: neither gets an answer.
    """

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1") -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                kept = "no-cache" if scope["path"].startswith("/static/") else "no-store"
                headers.setdefault("Cache-Control", kept)
            await send(message)

        fault = self.find_fault(scope["method"], Headers(scope=scope))
        if fault:
            content = {"error": {"code": "foreign-request", "message": fault}}
            await JSONResponse(content, 403)(scope, receive, send_guarded)
        else:
            await self.app(scope, receive, send_guarded)

    def find_fault(self, method: str, headers: Headers) -> str | None:
        """Why a request is refused, if it is."""
        host = headers.get("host", "")
        if not is_own_name(read_name(f"//{host}"), self.host):
            return f"This server does not answer under the name {host[:100]!r}."
        if method in ("GET", "HEAD"):
            return None
        origin = headers.get("origin")
        if origin is not None and read_place(origin) != host:
            return "Requests from other sites are refused."
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return "Requests from other sites are refused."
        return None


def read_place(address: str) -> str:
    """The host in an address, with its port; empty where there is none."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def read_name(address: str) -> str:
    """The host in an address, without its port; empty where there is none."""
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


def is_own_name(name: str, bound: str) -> bool:
    """Whether requests for a name may be meant for a server that is bound to `bound`."""
    if name in ("localhost", bound.lower()):
        return bool(name)
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return not is_loopback(bound) and name == socket.gethostname().lower()
    # A number is not looked up, so that it cannot be made to point elsewhere.
    return address.is_loopback or not is_loopback(bound)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that is bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
