"""Unpack an archive of files from outside: nothing leaves the folder, nothing but files is made."""

from __future__ import annotations

import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from quadmatch.files import fill_folder

IGNORED = ("__MACOSX", ".DS_Store")

Member = tuple[str, Callable[[], IO[bytes] | None]]


def unpack(
    archive: Path,
    folder: Path,
    *,
    largest: int,
    most: int,
    wanted: tuple[str, ...] = (),
    finish: Callable[[Path], object] = lambda _: None,
) -> None:
    """Unpack a zip or tar, of `most` files and `largest` bytes at most, into `folder`, there once all is in it.

    With `wanted`, only files below a folder of such a name. `finish` may add to the unpacked files before
    they appear. A member that is a link or device, or whose name leads outside, refuses the whole archive.
    """
    try:
        with fill_folder(folder, keep=True) as place:
            _write(_list_members(archive), place, archive, wanted, largest, most)
            finish(place)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ValueError(f"cannot unpack {archive}: {error}") from error


def find_parts(name: str) -> tuple[str, ...]:
    """The folders and the file that a member's name states, or an error if it leads anywhere else."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or "\\" in name or ":" in name or "\0" in name or ".." in parts:
        raise ValueError(f"member {name!r} leads outside of the folder")
    return parts


def _list_members(archive: Path) -> Iterator[Member]:
    """Name and opener of every file; folders are left out, whatever is neither is refused."""
    return _list_zip(archive) if zipfile.is_zipfile(archive) else _list_tar(archive)


def _list_zip(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ValueError(f"cannot unpack {archive}: member {info.filename!r} is not a plain file")
            if not info.is_dir():
                yield info.filename, partial(opened.open, info)


def _list_tar(archive: Path) -> Iterator[Member]:
    with tarfile.open(archive, "r:*") as opened:
        for info in opened:
            if not (info.isreg() or info.isdir()):
                raise ValueError(f"cannot unpack {archive}: member {info.name!r} is not a plain file")
            if info.isreg():
                yield info.name, partial(opened.extractfile, info)


def _write(
    members: Iterator[Member], place: Path, archive: Path, wanted: tuple[str, ...], largest: int, most: int
) -> None:
    files = written = 0
    for name, open_member in members:
        try:
            parts = find_parts(name)
        except ValueError as error:
            raise ValueError(f"cannot unpack {archive}: {error}") from None
        if any(part in IGNORED for part in parts) or (wanted and not set(parts[:-1]) & set(wanted)):
            continue
        files += 1
        if files > most:
            raise ValueError(f"cannot unpack {archive}: it holds more than {most:,} files, so it is not what was meant")
        path = place.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = open_member()
        if stream is None:
            raise ValueError(f"cannot unpack {archive}: member {name!r} has no contents")
        with stream, path.open("wb") as file:
            # Counted as it is written: the size that an archive states may be a lie.
            while block := stream.read(2**20):
                written += len(block)
                if written > largest:
                    size = f"{largest / 2**20:,.6g} MB"
                    raise ValueError(f"cannot unpack {archive}: it holds more than {size}, so it is not what was meant")
                file.write(block)
