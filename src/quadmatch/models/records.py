"""The files of runs and models, read so that whatever is wrong in one is an error that names it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Kinds = Mapping[str, type | tuple[type, ...]]


def read_record(path: Path, version: int, kinds: Kinds) -> dict[str, Any]:
    """The object of a JSON file whose "format" is `version` and whose keys hold values of these kinds."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object, as in {{...}}; it holds {_name(content)}")
    if content.get("format") != version:
        raise ValueError(f"{path} has the format {content.get('format')!r}; this version reads {version}")
    check_kinds(content, kinds, str(path))
    return content


def check_kinds(content: Mapping[str, Any], kinds: Kinds, origin: str) -> None:
    """Check that each key is there with a value of its kind; the error names `origin` and the key."""
    for key, kind in kinds.items():
        if key not in content:
            raise ValueError(f"{origin}: the key {key!r} is missing")
        if not isinstance(content[key], kind):
            raise ValueError(f"{origin}: the key {key!r} cannot hold {_name(content[key])}")


def _name(value: object) -> str:
    return {"dict": "an object", "list": "a list", "str": "text"}.get(type(value).__name__, repr(value))


def hash_content(content: bytes) -> str:
    """SHA-256 as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def read_tensors(path: Path, sha256: str | None, advice: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file, checked against its SHA-256 where that is known.

    A damaged file is an error that names it and ends with `advice`, what to do about it.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    content = path.read_bytes()
    found = hash_content(content)
    if sha256 not in (None, found):
        raise ValueError(f"{path} is damaged: its SHA-256 is {found} and must be {sha256}; {advice}")
    try:
        return load(content)
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"{path} is damaged: {error}; {advice}") from error
