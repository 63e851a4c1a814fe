"""Find, fetch, check and unpack a data set's official archives.

A prepared data set is a folder with one part an archive, each part a folder with a `part.json` that says
where it came from. Parts appear whole or not at all, so preparing again, or being killed, does no harm; two
archives of one name with different contents (a mirror of each split) are two parts, and loaders use both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quadmatch.datasets.downloads import download as fetch
from quadmatch.datasets.parts import RECORD, add_part, list_parts, read_record, refer_to
from quadmatch.datasets.sources import ARCHIVES, Archive

DEPTH = 6
LEAVES = ("Annotations", "JPEGImages", "annotations", "__MACOSX")
"""Folders with thousands of files in which no other part is looked for."""


@dataclass(frozen=True)
class Preparation:
    """What `prepare` found or made."""

    folders: tuple[Path, ...]
    """Parts that are there, and unpacked copies that are used where they lie."""
    messages: tuple[str, ...]
    missing: tuple[str, ...]
    """Each archive that was not found or fetched, with the reasons."""


def default_root() -> Path:
    """`$QUADMATCH_DATA`, or `~/.cache/quadmatch/data`."""
    return Path(os.environ.get("QUADMATCH_DATA") or Path.home() / ".cache" / "quadmatch" / "data")


def walk(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Folders to some depth in order of name, without those known to hold only pictures or annotations."""
    for place, folders, files in os.walk(folder):
        here = Path(place)
        deep = len(here.relative_to(folder).parts) >= DEPTH
        yield here, sorted(folders), sorted(files)
        hidden = (one for one in folders if one not in LEAVES and not (here / one / RECORD).exists())
        folders[:] = [] if deep else sorted(hidden)


def find_file(folder: Path, file: str) -> list[Path]:
    """Every file of that name at any depth of a folder, or the folder itself if it is that file."""
    if folder.is_file():
        return [folder] if folder.name == file else []
    found = (Path(place) / file for place, _, files in os.walk(folder) if file in files)
    return sorted(path for path in found if path.is_file())


def is_unpacked(folder: Path, archive: Archive) -> bool:
    """Whether an unpacked copy of the archive lies in a folder."""
    if folder.is_file():
        return False
    places = walk(folder)
    return folder.name == archive.marker or any(archive.marker in (*down, *files) for _, down, files in places)


def resolve(name: str, root: Path | str | None) -> list[Path]:
    """Folders in which a data set is looked for, given a root, a mirror, an archive or an unpacked copy.

    A root that was prepared gives its parts. Archives that are found packed are prepared in the default root.
    Without a root, that is the default root or, if nothing is there, the mirror `$QUADMATCH_MIRROR`.
    """
    folder = Path(root).expanduser() if root is not None else default_root()
    for prepared in (folder / name, folder):
        if parts := list_parts(prepared):
            return parts
    mirror = os.environ.get("QUADMATCH_MIRROR")
    if root is None and mirror and Path(mirror).exists():
        folder = Path(mirror)
    hint = f"`quadmatch data prepare {name} --mirror DIR` makes it"
    if not folder.exists():
        raise FileNotFoundError(f"{name}: there is no {folder}; {hint}")
    packed = any(
        find_file(folder, archive.file) and not is_unpacked(folder, archive) for archive in ARCHIVES.get(name, ())
    )
    if packed or folder.is_file():
        found = list(prepare(name, mirror=folder, root=default_root()).folders)
        if not found:
            raise FileNotFoundError(f"{name}: nothing of it is at {folder}; {hint}")
        return found
    return [folder]


def prepare(
    name: str,
    *,
    mirror: Path | str | None = None,
    root: Path | str | None = None,
    download: bool | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Preparation:
    """Bring each archive of a data set into `root`/`name`, from a mirror or from its official address.

    `download` None fetches only when no mirror is given. An archive that cannot be had is named; it is no error.
    """
    if name not in ARCHIVES:
        raise ValueError(f"only {', '.join(ARCHIVES)} are prepared from archives, got {name!r}")
    place = (Path(root).expanduser() if root is not None else default_root()) / name
    source = Path(mirror).expanduser() if mirror is not None else None
    if source is not None and not source.exists():
        raise FileNotFoundError(f"there is no mirror {source}")
    folders: list[Path] = []
    messages: list[str] = []
    missing: list[str] = []
    for archive in ARCHIVES[name]:
        found, reasons = _bring(archive, place, source, download, report)
        if found:
            folders += [folder for folder, _ in found]
            messages += [message for _, message in found]
        else:
            missing.append(f"{archive.file} ({archive.holds}): {'; '.join(reasons)}")
    return Preparation(tuple(dict.fromkeys(folders)), tuple(messages), tuple(missing))


def _bring(
    archive: Archive, place: Path, source: Path | None, download: bool | None, report: Callable[[str], None]
) -> tuple[list[tuple[Path, str]], list[str]]:
    """Parts of one archive with a message each, and why there is none."""
    reasons = []
    if source is not None:
        if found := find_file(source, archive.file):
            return [add_part(archive, path, place, report) for path in found], []
        if is_unpacked(source, archive):
            return [refer_to(archive, source, place)], []
        reasons.append(f"not under {source}")
    else:
        parts = [part for part in list_parts(place) if _belongs(part, archive)]
        if parts:
            return [(part, f"{archive.file}: already there") for part in parts], []
    if download or (download is None and source is None):
        path = place / "downloads" / archive.file
        reasons += fetch(archive.urls, path, largest=archive.largest, report=report)
        if path.exists():
            added = add_part(archive, path, place, report)
            path.unlink()
            return [added], []
    return [], reasons or ["not there, and nothing was fetched"]


def _belongs(part: Path, archive: Archive) -> bool:
    record = part / RECORD
    return read_record(record)["file"] == archive.file if record.exists() else is_unpacked(part, archive)
