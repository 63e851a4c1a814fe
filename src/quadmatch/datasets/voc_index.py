"""The parsed objects of a prepared Pascal VOC, kept beside it: thousands of small files are read once."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from quadmatch.datasets.annotation import Annotation
from quadmatch.datasets.parts import RECORD
from quadmatch.datasets.voc_folders import VocFolders
from quadmatch.files import write_file

FORMAT = "1"


def recall(folders: VocFolders, part: str) -> list[Annotation] | None:
    """What `remember` kept of the same prepared parts; None if there is nothing or it cannot be read."""
    path = _find_path(folders, part)
    if path is None:
        return None
    try:
        rows = json.loads(path.read_text())
        return [_restore(row, path.parent) for row in rows]
    except (OSError, ValueError, TypeError, KeyError):
        return None


def remember(folders: VocFolders, part: str, annotations: list[Annotation]) -> None:
    """Keep the objects, if they come from prepared parts, which never change."""
    path = _find_path(folders, part)
    if path is None:
        return
    rows = [_reduce(one, path.parent) for one in annotations]
    with suppress(OSError):  # a read-only data set is read anew each time
        write_file(path, json.dumps(rows).encode())


def _find_path(folders: VocFolders, part: str) -> Path | None:
    if not all((folder / RECORD).is_file() for folder in folders.searched):
        return None
    names = " ".join([FORMAT, part, *(folder.name for folder in folders.searched)])
    key = hashlib.sha256(names.encode()).hexdigest()[:12]
    return folders.searched[0].parent / f"objects-{part}-{key}.json"


def _reduce(one: Annotation, base: Path) -> dict[str, object]:
    assert isinstance(one.image, Path)
    image = one.image.relative_to(base).as_posix()
    points = one.points.tolist()
    return {"name": one.name, "image": image, "box": one.box, "names": one.names, "points": points}


def _restore(row: dict[str, Any], base: Path) -> Annotation:
    name, (x0, y0, x1, y1) = row["name"], row["box"]
    points = np.array(row["points"], dtype=np.float64).reshape(-1, 2)
    category = name.partition("/")[0]
    return Annotation(name, category, base / row["image"], (x0, y0, x1, y1), tuple(row["names"]), points)
