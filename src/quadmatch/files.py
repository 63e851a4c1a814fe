"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any


def write_file(path: str | Path, content: bytes) -> Path:
    """Write a file so that whoever looks sees the old one or the new one, whole."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def write_json(path: str | Path, content: Any) -> Path:
    """Write readable JSON; NaN is refused, as JSON has none."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return write_file(path, f"{text}\n".encode())
