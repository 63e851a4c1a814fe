"""Fetch a file from the first of several addresses that gives it."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

TIMEOUT = 30.0


def download(
    urls: Sequence[str], path: Path, *, largest: int, report: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Fetch at most `largest` bytes into `path`; what an earlier attempt left is continued. What failed, by address.

    The file exists afterwards if and only if one address gave all of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    failures: list[str] = []
    for url in urls:
        report(f"fetching {url}")
        try:
            _fetch(url, part, largest)
        except (OSError, urllib.error.URLError, http.client.HTTPException, ValueError) as error:
            failures.append(f"{url}: {error}")
            report(f"failed: {failures[-1]}")
            continue
        part.replace(path)
        return failures
    return failures


def _fetch(url: str, part: Path, largest: int) -> None:
    if not url.startswith(("http://", "https://", "file://")):
        raise ValueError("only http, https and file addresses are fetched")
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # the range asked for begins past the end: what is there is another file's
            raise
        have = 0
        answer = urllib.request.urlopen(url, timeout=TIMEOUT)
    with answer:
        continued = have > 0 and answer.status == 206
        expected = answer.headers.get("Content-Length")
        before = have if continued else 0
        with part.open("ab" if continued else "wb") as file:
            while block := answer.read(2**20):
                file.write(block)
                if file.tell() > largest:
                    file.truncate(0)
                    raise ValueError(f"it sends more than {largest / 2**20:,.6g} MB, so it is not what was meant")
    got = part.stat().st_size - before
    if expected is not None and got != int(expected):
        raise ValueError(f"the connection ended after {got} of {expected} bytes")
