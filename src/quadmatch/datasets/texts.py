"""Text files of users, read with a bound and with errors that name the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LARGEST = 64 * 2**20
"""Bytes of a text file: JSON of that size takes two gigabytes of memory once it is read."""


def read_text(path: Path, largest: int = LARGEST) -> str:
    """The text of a file in UTF-8, with a byte order mark or without."""
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
        if len(content) > largest:
            raise ValueError(f"it has more than {largest / 2**20:g} MB; keep only the entries that are needed")
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    text = read_text(path)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"cannot read {path}: its lists or objects are nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"cannot read {path}: {error}") from error
