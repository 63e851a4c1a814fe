"""Files and folders that appear whole or not at all: the one place that replaces them."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

PARTIAL = ".partial-"
"""How the name of a folder begins that is being filled or removed."""
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing, which name no file: the disk or a share of it is full, the file too large, the disk broken."""


def write_file(path: str | Path, content: bytes, *, make_folder: bool = False) -> Path:
    """Write a file so that whoever looks sees the old one or the new one, whole."""
    with replace_file(path, make_folder=make_folder) as file:
        file.write(content)
    return Path(path)


def write_json(path: str | Path, content: Any, *, make_folder: bool = False) -> Path:
    """Write readable JSON; NaN is refused, as JSON has none."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return write_file(path, f"{text}\n".encode(), make_folder=make_folder)


@contextmanager
def replace_file(path: str | Path, *, make_folder: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its name when all went well and disappears when not.

    What is no regular file, such as `/dev/null` or a pipe, is written into and stays what it is. A link stays a
    link: the file that it leads to is replaced, or made if it is not there yet. A link that leads nowhere, as
    one to itself, is an error.
    """
    check_target(path, make_folder=make_folder)
    if not _is_replaceable(path):
        with name_file(path), open(path, "wb") as file:
            yield file
        return
    place = Path(os.path.realpath(path))
    temporary = place.with_name(f"{place.name}.{uuid.uuid4().hex}.partial")
    try:
        with name_file(path, temporary):
            with temporary.open("wb") as file:
                yield file
                settle(file)
            os.replace(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def name_file(path: str | Path, temporary: Path | None = None) -> Iterator[None]:
    """Within: a file is written, and an error about what it lies on, or about the temporary file, names it."""
    try:
        yield
    except OSError as error:
        nameless = error.filename is None and error.errno in DISK
        if not nameless and (temporary is None or error.filename != os.fspath(temporary)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse to read what is no regular file: a pipe would be waited for, and a device may never end."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("it is not a regular file")


def check_target(path: str | Path, *, make_folder: bool = False) -> None:
    """Refuse a file that cannot be written because of its name or folder: before the work that it is to hold."""
    path = Path(path)
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # A link to itself, a name that is too long or has a NUL in it.
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"cannot write {str(path)!r:.200}: {reason}") from error
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if make_folder:
        folder.mkdir(parents=True, exist_ok=True)
    elif not folder.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {folder}; make it first")


def check_folder(folder: Path) -> None:
    """Make a folder if need be, and refuse one that cannot be written: before the work that it is to hold."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder):
        pass


def _is_replaceable(path: str | Path) -> bool:
    """Whether a path is a regular file or nothing yet; `/dev/stdout` is neither, even if it leads to a file."""
    return not os.path.exists(path) or (os.path.isfile(path) and Path(path).absolute().parts[1:2] != ("dev",))


def settle(file: IO[bytes]) -> None:
    """Bring what was written to the disk itself, where there is one: a loss of power does not undo it."""
    file.flush()
    if _is_regular(file):
        os.fsync(file.fileno())


def _is_regular(file: IO[Any]) -> bool:
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def take_lock(file: IO[Any], refusal: str) -> None:
    """Keep other processes from an open file until it is closed or this process dies; `refusal` if one has it.

    Pipes and devices, and systems without such locks, are for everybody.
    """
    try:
        import fcntl
    except ImportError:
        return
    try:
        if _is_regular(file):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(refusal) from None
    except OSError:  # A file system without them.
        return


@contextmanager
def fill_folder(folder: Path, *, keep: bool = False) -> Iterator[Path]:
    """A new folder to fill, which becomes `folder` when all went well and disappears when not.

    With `keep`, one of that name that another process has filled meanwhile is as good.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = _name_partial(folder)
    temporary.mkdir()
    try:
        yield temporary
        try:
            os.replace(temporary, folder)
        except OSError:
            if not (keep and folder.is_dir()):
                raise
        _settle_folder(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder under another name, so that nobody sees half of it."""
    shutil.rmtree(folder.rename(_name_partial(folder)))


def remove_partial(folder: Path, age: float = 24 * 3600) -> None:
    """Remove what a process left in `folder` that was killed more than `age` seconds ago."""
    for entry in folder.glob(f"{PARTIAL}*"):
        if time.time() - entry.stat().st_mtime > age:
            shutil.rmtree(entry, ignore_errors=True)


def _name_partial(folder: Path) -> Path:
    return folder.with_name(f"{PARTIAL}{uuid.uuid4().hex}")


def _settle_folder(folder: Path) -> None:
    """Make a rename outlive a loss of power, where the system can: what it replaces may be removed next."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
