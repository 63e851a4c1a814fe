"""Find, fetch, check and unpack a data set's official archives."""

from __future__ import annotations

import os
from pathlib import Path


def default_root() -> Path:
    """`$QUADMATCH_DATA`, or `~/.cache/quadmatch/data`."""
    return Path(os.environ.get("QUADMATCH_DATA") or Path.home() / ".cache" / "quadmatch" / "data")


def resolve(name: str, root: Path | str | None) -> list[Path]:
    """Folders in which the data set `name` is looked for."""
    folder = Path(root) if root is not None else default_root()
    if not folder.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder {folder}")
    return [folder]
