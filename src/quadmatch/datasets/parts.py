"""One archive unpacked is one part: a folder that appears whole, with a record of where it came from."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from quadmatch.datasets.sources import Archive
from quadmatch.datasets.unpacking import unpack
from quadmatch.files import fill_folder, remove_partial, write_json

RECORD = "part.json"


def list_parts(folder: Path) -> list[Path]:
    """The parts of a prepared data set and the unpacked copies that it refers to."""
    parts = []
    for record in list_records(folder):
        stated = read_record(record)
        parts.append(Path(str(stated["refers_to"])) if "refers_to" in stated else record.parent)
    return list(dict.fromkeys(parts))


def list_records(folder: Path) -> list[Path]:
    """The records of a prepared data set, without those of parts that are being made."""
    return sorted(one for one in folder.glob(f"*/{RECORD}") if not one.parent.name.startswith("."))


def add_part(archive: Archive, path: Path, place: Path, report: Callable[[str], None]) -> tuple[Path, str]:
    """The part that an archive file unpacks to, made if it is not there."""
    status = path.stat()
    if status.st_size > archive.largest:
        size = f"{status.st_size / 2**20:,.0f} MB; {archive.file} has at most {archive.largest // 2**20:,} MB"
        raise ValueError(f"{path} has {size}, so it is not what was meant")
    stamp: dict[str, object] = {"file": archive.file, "origin": str(path.resolve())}
    stamp |= {"bytes": status.st_size, "modified": status.st_mtime_ns}
    for record in list_records(place):
        if stamp.items() <= read_record(record).items():
            return record.parent, f"{archive.file}: already there"
    digests = _digest(path)
    part = place / f"{path.name.split('.')[0]}-{digests[0][:12]}"
    known = bool(set(digests) & set(archive.known))
    if part.exists():
        return part, f"{archive.file}: already there"
    report(f"unpacking {path}")
    remove_partial(place)
    stamp |= {"sha256": digests[0], "known": known}
    if archive.marker == archive.file:
        with fill_folder(part, keep=True) as filling:
            shutil.copyfile(path, filling / path.name)
            write_json(filling / RECORD, stamp)
    else:
        bounds = {"largest": archive.largest, "most": archive.most}
        unpack(path, part, wanted=archive.wanted, finish=lambda filling: write_json(filling / RECORD, stamp), **bounds)
    judgement = "a known copy" if known else "not a known copy, so judge it by its counts"
    return part, f"{archive.file}: unpacked ({judgement})"


def refer_to(archive: Archive, source: Path, place: Path) -> tuple[Path, str]:
    """Note that an unpacked copy lies elsewhere."""
    key = hashlib.sha256(f"{archive.file} {source.resolve()}".encode()).hexdigest()[:12]
    folder = place / f"{archive.marker.split('.')[0]}-at-{key}"
    write_json(folder / RECORD, {"file": archive.file, "refers_to": str(source.resolve())}, make_folder=True)
    return source.resolve(), f"{archive.file}: used unpacked from {source}"


def read_record(record: Path) -> dict[str, object]:
    """What a part's record states, at least the archive's `file`."""
    try:
        stated = json.loads(record.read_text())
        stated["file"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{record} is damaged ({error}): remove its folder and prepare again") from error
    return dict(stated)


def _digest(path: Path) -> tuple[str, str]:
    """SHA-256 and MD5; the second only because it is what is published for one archive."""
    sha, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(2**22):
            sha.update(block)
            md5.update(block)
    return sha.hexdigest(), md5.hexdigest()
