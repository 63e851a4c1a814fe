"""What the frozen part of a network gives, computed once an image and kept memory-mapped.

A store is a folder named by a key: a hash of all that its content depends on besides the image (weights,
layers, size, format). In it, entries lie in shards, safetensors files that are written whole and then
renamed: a process killed at any moment leaves complete shards only, several processes may add to one store
at once, and what is missing is computed by whoever comes next.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from safetensors.numpy import save

from quadmatch.files import write_file

Array = np.ndarray
Arrays = Mapping[str, Array]

SHARD_BYTES, SHARD_SECONDS = 32 * 2**20, 30.0
"""A shard is written when it is this large or this old: what a kill can cost."""
DTYPES = {"F16": np.float16, "F32": np.float32, "U8": np.uint8}
SEPARATOR = "|"


def hash_key(description: Mapping[str, object]) -> str:
    """A short name for all that a store's content depends on."""
    text = json.dumps(description, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def hash_entry(content: bytes | Array, crop: Sequence[float] | None, points: Array) -> str:
    """A name for one object: its image (the file's bytes, or the pixels), its crop and its keypoints."""
    digest = hashlib.sha256()
    if isinstance(content, np.ndarray):
        digest.update(f"{content.dtype} {content.shape}".encode())
        content = np.ascontiguousarray(content).tobytes()
    digest.update(content)
    digest.update(repr(None if crop is None else [float(side) for side in crop]).encode())
    digest.update(np.ascontiguousarray(points, dtype=np.float64).tobytes())
    return digest.hexdigest()[:32]


@dataclass
class FeatureStore:
    """Named entries, each a few arrays, read without copying."""

    folder: Path
    shard_bytes: int = SHARD_BYTES
    _places: dict[str, tuple[Path, dict[str, Any]]] = field(default_factory=dict, repr=False)
    _maps: dict[Path, Array] = field(default_factory=dict, repr=False)
    _waiting: dict[str, dict[str, Array]] = field(default_factory=dict, repr=False)
    _waiting_bytes: int = 0
    _waiting_since: float = 0.0

    @classmethod
    def open(cls, folder: str | Path, key: str, *, shard_bytes: int = SHARD_BYTES) -> FeatureStore:
        """The store of that key in `folder`, with every entry that is there by now."""
        store = cls(Path(folder) / key, shard_bytes)
        store.folder.mkdir(parents=True, exist_ok=True)
        store.refresh()
        return store

    def refresh(self) -> None:
        """Take note of shards that other processes have added since."""
        known = {path for path, _ in self._places.values()}
        # Names begin with the time: of two entries of one name the older is kept, whoever looks.
        for path in sorted(self.folder.glob("*.safetensors")):
            if path not in known:
                for name, place in _read_header(path).items():
                    self._places.setdefault(name, (path, place))

    def __len__(self) -> int:
        return len(self._places.keys() | self._waiting.keys())

    def __contains__(self, name: object) -> bool:
        return name in self._places or name in self._waiting

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that have no entry, each once, in their order."""
        return [name for name in dict.fromkeys(names) if name not in self]

    def add(self, name: str, arrays: Arrays) -> None:
        """Keep an entry; it is on disk when its shard is full or old, or after `flush`."""
        if SEPARATOR in name or name == "":
            raise ValueError(f"name {name!r}: an entry's name is not empty and has no {SEPARATOR!r}")
        for part, array in arrays.items():
            if array.dtype not in DTYPES.values():
                raise TypeError(f"arrays[{part!r}] is {array.dtype}; a store keeps float16, float32 and uint8")
        if name in self:
            return
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting[name] = {part: np.ascontiguousarray(array) for part, array in arrays.items()}
        self._waiting_bytes += sum(array.nbytes for array in self._waiting[name].values())
        age = time.monotonic() - self._waiting_since
        if self._waiting_bytes >= self.shard_bytes or age >= SHARD_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what was added since the last shard."""
        if not self._waiting:
            return
        flat: dict[str, Array] = {}
        for name, entry in self._waiting.items():
            flat |= {f"{name}{SEPARATOR}{part}": array for part, array in entry.items()}
        plain = save(flat)
        checksum = zlib.crc32(memoryview(plain)[_data_start(plain) :])
        path = self.folder / f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.safetensors"
        write_file(path, save(flat, metadata={"crc32": f"{checksum:08x}"}))
        for name, place in _read_header(path).items():
            self._places.setdefault(name, (path, place))
        self._waiting.clear()
        self._waiting_bytes = 0

    def get(self, name: str) -> dict[str, Array]:
        """One entry's arrays: views of the mapped file, not to be written to."""
        if name in self._waiting:
            return dict(self._waiting[name])
        if name not in self._places:
            raise KeyError(f"no entry {name!r} in {self.folder}")
        path, place = self._places[name]
        data = self._maps[path] if path in self._maps else self._map(path)
        found = {}
        for part, header in place.items():
            start, end = header["data_offsets"]
            found[part] = data[start:end].view(DTYPES[header["dtype"]]).reshape(header["shape"])
        return found

    def _map(self, path: Path) -> Array:
        """A shard's data, mapped and, as this is its first use, checked."""
        whole = np.memmap(path, np.uint8, "r")
        start = _data_start(whole)
        header = json.loads(bytes(whole[8:start]))
        if f"{zlib.crc32(whole[start:].data):08x}" != header["__metadata__"]["crc32"]:
            raise ValueError(f"{path} is damaged: remove it, and what it held is computed again")
        self._maps[path] = np.asarray(whole[start:])
        return self._maps[path]

    def __enter__(self) -> FeatureStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()


def _data_start(content: bytes | Array) -> int:
    return 8 + int.from_bytes(bytes(content[:8]), "little")


def _read_header(path: Path) -> dict[str, dict[str, Any]]:
    """Where each entry's parts lie in a shard; a shard that is cut short is an error that names it."""
    damaged = f"{path} is damaged: remove it, and what it held is computed again"
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = min(_data_start(file.read(8)), size)
            header = json.loads(file.read(start - 8))
        header.pop("__metadata__")
        end = max((place["data_offsets"][1] for place in header.values()), default=0)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(damaged) from error
    if size != start + end:
        raise ValueError(damaged)
    entries: dict[str, dict[str, Any]] = {}
    for flat, place in header.items():
        name, _, part = flat.rpartition(SEPARATOR)
        entries.setdefault(name, {})[part] = place
    return entries
