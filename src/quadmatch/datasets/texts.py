"""Text files of users, read with a bound and with errors that name the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from quadmatch.files import check_regular

LARGEST = 64 * 2**20
"""Bytes of a text file: JSON of that size takes two gigabytes of memory once it is read."""
HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""What JSON with a lone surrogate has: its escape, or the surrogate itself."""


def read_text(path: Path, largest: int = LARGEST) -> str:
    """The text of a regular file in UTF-8, with a byte order mark or without."""
    try:
        check_regular(path)
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
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"cannot read {path}: {error}") from error


def parse_json(text: str) -> Any:
    """What a text in JSON says; a text within it that no file and no answer could hold is refused."""
    try:
        stored = json.loads(text)
    except RecursionError:
        raise ValueError("its lists or objects are nested too deeply") from None
    half = find_half(stored) if HALF.search(text) else None
    if half is not None:
        raise ValueError(f"{half} has half a character (a lone surrogate), which is no text")
    return stored


def find_half(stored: Any) -> str | None:
    """Where the first text with a lone surrogate stands, in ASCII: the keys that lead to it, and the text itself."""
    left: list[tuple[str, Any]] = [("", stored)]
    while left:
        place, one = left.pop()
        if isinstance(one, str) and not is_text(one):
            return f"{place}{one!a:.80}"
        if isinstance(one, dict):
            left += [(f"{place}{key!a:.80}: ", part) for key, part in reversed(one.items())]
            left += [(place, key) for key in reversed(one)]
        elif isinstance(one, list):
            left += [(place, part) for part in reversed(one)]
    return None


def is_text(text: str) -> bool:
    """Whether a text can be written in UTF-8: a lone surrogate, which JSON may escape, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
