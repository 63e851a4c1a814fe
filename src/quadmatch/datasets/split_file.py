"""The field's split of Pascal VOC Keypoints, a pickle of lists of names, read without executing anything."""

from __future__ import annotations

import pickle
import zipfile
from io import BytesIO
from pathlib import Path

LARGEST = 64 * 2**20
"""Bytes of one member that are read at most; the official file has 0.6 MB."""


class _Array:
    """Stands in for `numpy.ndarray` while unpickling: keeps the list of items and does nothing else."""

    __slots__ = ("items",)

    def __init__(self, *_: object) -> None:
        self.items: object = None

    def __setstate__(self, state: object) -> None:
        self.items = state[-1] if isinstance(state, tuple) and state else None


class _Type:
    """Stands in for `numpy.dtype`."""

    __slots__ = ()

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


ALLOWED: dict[tuple[str, str], type] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
}


class _NamesOnly(pickle.Unpickler):
    """Every global of the pickle becomes an inert stand-in of this file, or is refused."""

    def find_class(self, module: str, name: str) -> type:
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise ValueError(f"a list of names does not need {module}.{name}: refused") from None


def read_split_file(path: Path) -> dict[str, list[str]]:
    """Names such as `aeroplane/2008_000008_1` of "train" and "test", sorted."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {part: sorted(_read_names(archive, part)) for part in ("train", "test")}
    except (OSError, zipfile.BadZipFile, pickle.UnpicklingError, KeyError, EOFError, ValueError) as error:
        raise ValueError(f"cannot read the split file {path}: {error}") from error


def _read_names(archive: zipfile.ZipFile, part: str) -> list[str]:
    member = archive.getinfo(f"{part}.npy")
    if member.file_size > LARGEST:
        raise ValueError(f"{part}.npy has {member.file_size} bytes, more than {LARGEST}")
    data = archive.read(member)
    if data[:6] != b"\x93NUMPY" or data[6] not in (1, 2, 3):
        raise ValueError(f"{part}.npy is not a numpy array")
    start, width = (10, 2) if data[6] == 1 else (12, 4)
    start += int.from_bytes(data[8 : 8 + width], "little")
    array = _NamesOnly(BytesIO(data[start:]), encoding="latin1").load()
    names: list[str] = []
    for category in _list_items(array, part):
        for name in _list_items(category, part):
            if not isinstance(name, str) or name.count("/") != 1 or not name.endswith(".xml"):
                raise ValueError(f"{part}: expected class/picture_object.xml, got {name!r:.80}")
            names.append(name.removesuffix(".xml"))
    return names


def _list_items(value: object, part: str) -> list[object]:
    if isinstance(value, _Array):
        value = value.items
    if not isinstance(value, list):
        raise ValueError(f"{part}: expected a list of names, got {type(value).__name__}")
    return value
