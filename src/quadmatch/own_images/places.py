"""Files of a user wherever fsspec reaches: `s3://…`, `https://…`, or a path; credentials are never shown."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Folder = str | os.PathLike[str]
"""What the names of a list are relative to: a path or an address."""
LARGEST = 2**29
"""Bytes of a file that is fetched."""
BLOCK = 2**20
KEPT = 4
"""Fetched files of keypoints that are kept: many pictures may share one."""


def is_remote(name: Folder) -> bool:
    """Whether a name is an address, not a path; `C:/x` is a path."""
    return re.match(r"[a-zA-Z][\w.+:-]+://", os.fspath(name)) is not None


def locate(folder: Folder | None, name: str) -> str:
    """A name from its folder, either of which may be an address; `~` is the user's own folder."""
    if is_remote(name):
        return name
    name = os.path.expanduser(name)
    if folder is None or not is_remote(folder) or os.path.isabs(name):
        return os.fspath(Path(folder or "") / name)
    return f"{os.fspath(folder).rstrip('/')}/{name}"


def find_folder(name: str) -> Folder:
    """What the names in a list are relative to."""
    if not is_remote(name):
        return Path(name).parent
    return name.partition("?")[0].rpartition("/")[0]


def hide_secrets(name: str) -> str:
    """An address as it may be shown: without user, password and what follows a question mark; a path as it is."""
    if not is_remote(name):
        return name
    plain, mark, _ = name.partition("?")
    return re.sub(r"(://)[^/]*@", r"\1", plain) + (f"{mark}…" if mark else "")


def check_address(name: str, where: str) -> None:
    """Refuse an address that has a password in it: it would be in lists and process tables."""
    if is_remote(name) and urlsplit(name).password is not None:
        raise ValueError(
            f"{where} {hide_secrets(name)} has a password in it; give credentials by the environment or by "
            "the storage's own configuration file"
        )


@contextmanager
def fetch(name: str, what: str) -> Iterator[Path]:
    """A file on this machine while it is read: the path itself, or a copy of what an address has."""
    if not is_remote(name):
        yield Path(name)
        return
    with tempfile.TemporaryDirectory(prefix="quadmatch-") as folder:
        path = _copy(name, what, Path(folder))
        with _tell_address(name, path):
            yield path


@contextmanager
def fetch_points(name: str, what: str) -> Iterator[str]:
    """As `fetch`, for a file of keypoints, which is kept for others; an annotation's id (`#17`) stays at its end."""
    if not is_remote(name):
        yield name
        return
    address, mark, wanted = name.partition("#")
    path, _ = _keep(address, what)
    with _tell_address(address, path):
        yield f"{path}{mark}{wanted}"


@lru_cache(maxsize=KEPT)
def _keep(address: str, what: str) -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    """A copy in a folder that is removed when it is forgotten."""
    folder = tempfile.TemporaryDirectory(prefix="quadmatch-")
    return _copy(address, what, Path(folder.name)), folder


@contextmanager
def _tell_address(address: str, path: Path) -> Iterator[None]:
    """Within: a copy is read; what is found wrong with it is told of the address."""
    try:
        yield
    except (OSError, ValueError) as error:
        text = str(error).replace(os.fspath(path), hide_secrets(address))
        raise ValueError(text) from None


def _copy(address: str, what: str, folder: Path) -> Path:
    """The file at an address, under its own name in a folder."""
    path = folder / (address.partition("?")[0].rpartition("/")[2] or "file")
    with _open(address, what) as source, path.open("wb") as target:
        left = LARGEST
        while block := source.read(min(BLOCK, left + 1)):
            left -= target.write(block)
            if left < 0:
                raise ValueError(f"it has more than {LARGEST >> 20} MB")
    return path


@contextmanager
def _open(address: str, what: str) -> Iterator[Any]:
    """What an address has; whatever goes wrong there, in whichever library, is told in one line without secrets."""
    shown = hide_secrets(address)
    try:
        system, path = _find_system(address)
        with system.open(path, "rb") as file:
            yield file
    except ImportError as error:
        raise ImportError(f"{what}: {shown} needs a library: {error}") from None
    except MemoryError:
        raise
    except Exception as error:  # Storage libraries have exceptions of their own, without a common kind.
        # That of HTTP says of everything that there is no such file; why, its cause knows.
        cause = error.__cause__
        reason = hide_text(str(cause or error), address) or type(error).__name__
        if isinstance(error, PermissionError) or re.search(r"ACCESS_DENIED|\b40[13]\b", reason):
            reason = f"the storage refuses it; check the credentials ({reason})"
        elif isinstance(error, FileNotFoundError) and (cause is None or getattr(cause, "status", None) == 404):
            raise FileNotFoundError(f"{what}: there is no file {shown}") from None
        raise ValueError(f"{what}: cannot read {shown}: {reason}") from None


def _find_system(address: str) -> tuple[Any, str]:
    """What opens files at an address, and the file's name there; S3 is read by pyarrow where s3fs is not installed."""
    import fsspec

    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(address)
        return found
    except ImportError:
        if not address.startswith("s3://"):
            raise
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import S3FileSystem

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    system = S3FileSystem(endpoint_override=endpoint, connect_timeout=5, request_timeout=60)
    return ArrowFSWrapper(system), address.removeprefix("s3://")


def hide_text(text: str, address: str) -> str:
    """A message without the secrets of an address that may be quoted in it, on one line."""
    parts = urlsplit(address)
    for secret in (address, parts.query, parts.password, parts.username):
        if secret:
            text = text.replace(secret, hide_secrets(secret) if secret == address else "…")
    return " ".join(text.split())
