"""Unpack an archive of files from outside: nothing leaves the folder, nothing but files is made."""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, cast

from quadmatch.files import fill_folder

IGNORED = ("__MACOSX", ".DS_Store")
HEADER, HEADERS = 2**16, 2**27
"""Bytes that a tar may spend on what stands before one member, its name above all, and before all of them."""

Member = tuple[str, Callable[[], IO[bytes] | None] | None]
"""A name, and what opens the file; None for a folder."""


class Headers:
    """An open tar of which little is read on the way to the next member: a header may state a name of gigabytes."""

    def __init__(self, file: BufferedIOBase) -> None:
        self.file = file
        self.next: int | None = HEADER
        """Bytes until the next member; None: contents are read, which others count."""
        self.left = HEADERS

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def read(self, size: int) -> bytes:
        """The next bytes, if there may be so many."""
        if self.next is not None:
            self.next, self.left = self.next - size, self.left - size
            if min(self.next, self.left) < 0:
                raise tarfile.ReadError("its headers are too large, so it is not what was meant")
        return self.file.read(size)


def unpack(
    archive: Path,
    folder: Path,
    *,
    largest: int,
    most: int,
    wanted: tuple[str, ...] = (),
    finish: Callable[[Path], object] = lambda _: None,
) -> None:
    """Unpack a zip or tar, of `most` members and `largest` bytes at most, into `folder`, there once all is in it.

    A tar is plain or compressed with gzip. With `wanted`, only files below a folder of such a name. `finish` may
    add to the unpacked files before they appear. A member that is a link or device, or whose name leads outside,
    refuses the whole archive.
    """
    try:
        with fill_folder(folder, keep=True) as place:
            _write(_list_members(archive), place, archive, wanted, largest, most)
            finish(place)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise ValueError(f"cannot unpack {archive}: {error!s:.400}") from error


def find_parts(name: str) -> tuple[str, ...]:
    """The folders and the file that a member's name states, or an error if it leads anywhere else."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or "\\" in name or ":" in name or "\0" in name or ".." in parts:
        raise ValueError(f"member {name!r:.80} leads outside of the folder")
    return parts


def _list_members(archive: Path) -> Iterator[Member]:
    """Name and opener of every file and folder; whatever is neither is refused."""
    return _list_zip(archive) if zipfile.is_zipfile(archive) else _list_tar(archive)


def _list_zip(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ValueError(f"cannot unpack {archive}: member {info.filename!r:.80} is not a plain file")
            yield info.filename, None if info.is_dir() else partial(opened.open, info)


def _list_tar(archive: Path) -> Iterator[Member]:
    with archive.open("rb") as start:
        packed = start.read(2) == b"\x1f\x8b"
    with gzip.open(archive) if packed else archive.open("rb") as file:
        headers = Headers(file)
        with tarfile.open(fileobj=cast("IO[bytes]", headers), mode="r:") as opened:
            while (info := opened.next()) is not None:
                if not (info.isreg() or info.isdir()):
                    raise ValueError(f"cannot unpack {archive}: member {info.name!r:.80} is not a plain file")
                headers.next = None
                yield info.name, partial(opened.extractfile, info) if info.isreg() else None
                headers.next = HEADER


def _write(
    members: Iterator[Member], place: Path, archive: Path, wanted: tuple[str, ...], largest: int, most: int
) -> None:
    written = 0
    for number, (name, open_member) in enumerate(members, 1):
        if number > most:
            held = f"it holds more than {most:,} files and folders"
            raise ValueError(f"cannot unpack {archive}: {held}, so it is not what was meant")
        try:
            parts = find_parts(name)
        except ValueError as error:
            raise ValueError(f"cannot unpack {archive}: {error}") from None
        skipped = any(part in IGNORED for part in parts) or (wanted and not set(parts[:-1]) & set(wanted))
        if skipped or open_member is None:
            continue
        path = place.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = open_member()
        if stream is None:
            raise ValueError(f"cannot unpack {archive}: member {name!r:.80} has no contents")
        with stream, path.open("wb") as file:
            # Counted as it is written: the size that an archive states may be a lie.
            while block := stream.read(2**20):
                written += len(block)
                if written > largest:
                    size = f"{largest / 2**20:,.6g} MB"
                    raise ValueError(f"cannot unpack {archive}: it holds more than {size}, so it is not what was meant")
                file.write(block)
