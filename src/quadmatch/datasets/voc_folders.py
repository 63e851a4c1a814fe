"""Where the parts of Pascal VOC Keypoints lie: several folders may each hold a part."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError
from xml.etree.ElementTree import parse as parse_xml

from quadmatch.datasets.split_file import read_split_file

SPLIT_FILE = "voc2011_pairs.npz"
FLAGS = ("difficult", "occluded", "truncated")


def parse(path: Path) -> Element:
    """The root element of an XML file, or an error that names the file."""
    try:
        root = parse_xml(path).getroot()
    except (OSError, ParseError) as error:
        raise ValueError(f"cannot read the annotation {path}: {error}") from error
    assert root is not None
    return root


def read_number(element: Element, key: str, path: Path) -> float:
    """An attribute of an element as a number, or an error that names file and attribute."""
    try:
        return float(element.get(key, ""))
    except ValueError:
        raise ValueError(f"{path}: <{element.tag}> needs a number {key}, got {element.get(key)!r}") from None


@dataclass(frozen=True)
class VocPicture:
    """What is used of a VOC annotation."""

    size: tuple[int, int]
    """Width and height."""
    flagged: tuple[bool, ...]
    """Of each object, whether it is difficult, occluded or truncated."""


def _read_voc(path: Path) -> VocPicture:
    tree = parse(path)
    try:
        width, height = (int(tree.findtext(f"size/{key}") or "") for key in ("width", "height"))
    except ValueError:
        raise ValueError(f"{path} needs size/width and size/height") from None
    objects = tree.findall("object")
    flagged = (any((one.findtext(flag) or "0").strip() != "0" for flag in FLAGS) for one in objects)
    return VocPicture((width, height), tuple(flagged))


@dataclass
class VocFolders:
    """Parts of the data set found under some folders, each file looked up by name."""

    searched: tuple[Path, ...]
    keypoints: list[Path] = field(default_factory=list)
    """Folders `annotations` with one folder a class."""
    devkits: list[Path] = field(default_factory=list)
    """Folders `VOC2011`."""
    split_file: Path | None = None
    _listed: dict[str, frozenset[str]] = field(default_factory=dict)
    _pictures: dict[str, VocPicture | None] = field(default_factory=dict)

    def read_names(self, part: str) -> list[str]:
        """The objects of "train" or "test" by the field's split file."""
        if self.split_file is None:
            raise FileNotFoundError(f"pascal-voc: {SPLIT_FILE} is not under {self.describe()}")
        return read_split_file(self.split_file)[part]

    def find_keypoints(self, name: str) -> Path | None:
        """The Berkeley annotation of an object."""
        category, _, rest = name.partition("/")
        return self._find((os.path.join(folder, category) for folder in self.keypoints), f"{rest}.xml")

    def find_annotation(self, picture: str) -> Path | None:
        """The VOC annotation of a picture."""
        return self._find((os.path.join(folder, "Annotations") for folder in self.devkits), f"{picture}.xml")

    def find_picture(self, picture: str) -> Path | None:
        """The JPEG of a picture."""
        return self._find((os.path.join(folder, "JPEGImages") for folder in self.devkits), f"{picture}.jpg")

    def read_picture(self, picture: str) -> VocPicture | None:
        """What the VOC annotation of a picture says; None if it is missing."""
        if picture not in self._pictures:
            path = self.find_annotation(picture)
            self._pictures[picture] = None if path is None else _read_voc(path)
        return self._pictures[picture]

    def _find(self, folders: Iterable[str], file: str) -> Path | None:
        # One listing a folder instead of one question to the file system for each of 18,553 objects.
        for folder in folders:
            if folder not in self._listed:
                self._listed[folder] = frozenset(os.listdir(folder) if os.path.isdir(folder) else ())
            if file in self._listed[folder]:
                return Path(folder, file)
        return None

    def describe(self) -> str:
        """Where it was looked, for messages."""
        return ", ".join(str(path) for path in self.searched)


def find_voc(root: Path | str | None) -> VocFolders:
    """Look for the three parts under `root`, in whatever layout their archives were unpacked."""
    from quadmatch.datasets.archives import resolve, walk

    found = VocFolders(tuple(resolve("pascal-voc", root)))
    for folder in found.searched:
        if folder.name == "annotations":
            found.keypoints.append(folder)
        for here, folders, files in walk(folder):
            if {"JPEGImages", "Annotations"} & set(folders):
                found.devkits.append(here)
            if "annotations" in folders:
                found.keypoints.append(here / "annotations")
            if SPLIT_FILE in files and found.split_file is None:
                found.split_file = here / SPLIT_FILE
    if not (found.devkits or found.keypoints or found.split_file):
        raise FileNotFoundError(
            f"pascal-voc is not under {found.describe()}: `quadmatch data prepare pascal-voc` makes it"
        )
    return found
