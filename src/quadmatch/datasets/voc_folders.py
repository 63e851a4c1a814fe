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
DEPTH = 5


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


@dataclass
class VocFolders:
    """Parts of the data set found under some folders, each file looked up by name."""

    searched: tuple[Path, ...]
    keypoints: list[Path] = field(default_factory=list)
    """Folders `annotations` with one folder a class."""
    devkits: list[Path] = field(default_factory=list)
    """Folders `VOC2011`."""
    split_file: Path | None = None
    _listed: dict[Path, frozenset[str]] = field(default_factory=dict)
    _sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def read_names(self, part: str) -> list[str]:
        """The objects of "train" or "test" by the field's split file."""
        if self.split_file is None:
            raise FileNotFoundError(f"pascal-voc: {SPLIT_FILE} is not under {self._describe()}")
        return read_split_file(self.split_file)[part]

    def find_keypoints(self, name: str) -> Path | None:
        """The Berkeley annotation of an object."""
        category, _, rest = name.partition("/")
        return self._find((folder / category for folder in self.keypoints), f"{rest}.xml")

    def find_annotation(self, picture: str) -> Path | None:
        """The VOC annotation of a picture."""
        return self._find((folder / "Annotations" for folder in self.devkits), f"{picture}.xml")

    def find_picture(self, picture: str) -> Path | None:
        """The JPEG of a picture."""
        return self._find((folder / "JPEGImages" for folder in self.devkits), f"{picture}.jpg")

    def read_size(self, picture: str) -> tuple[int, int]:
        """Width and height that the VOC annotation of a picture states."""
        if picture not in self._sizes:
            path = self.find_annotation(picture)
            if path is None:
                raise FileNotFoundError(f"Annotations/{picture}.xml is not under {self._describe()}")
            tree = parse(path)
            try:
                width, height = (int(tree.findtext(f"size/{key}") or "") for key in ("width", "height"))
            except ValueError:
                raise ValueError(f"{path} needs size/width and size/height") from None
            self._sizes[picture] = (width, height)
        return self._sizes[picture]

    def _find(self, folders: Iterable[Path], file: str) -> Path | None:
        # One listing a folder instead of one question to the file system for each of 18,553 objects.
        for folder in folders:
            if folder not in self._listed:
                self._listed[folder] = frozenset(os.listdir(folder) if folder.is_dir() else ())
            if file in self._listed[folder]:
                return folder / file
        return None

    def _describe(self) -> str:
        return ", ".join(str(path) for path in self.searched)


def find_voc(root: Path | str | None) -> VocFolders:
    """Look for the three parts under `root`, in whatever layout their archives were unpacked."""
    from quadmatch.datasets.archives import resolve

    found = VocFolders(tuple(resolve("pascal-voc", root)))
    for folder in found.searched:
        for place, folders, files in os.walk(folder):
            here = Path(place)
            if "JPEGImages" in folders or "Annotations" in folders:
                found.devkits.append(here)
            if here.name == "annotations":
                found.keypoints.append(here)
            if SPLIT_FILE in files and found.split_file is None:
                found.split_file = here / SPLIT_FILE
            deep = len(here.relative_to(folder).parts) >= DEPTH
            inside = here.name == "annotations" or here in found.devkits
            folders[:] = [] if deep or inside else sorted(folders)
    if not (found.devkits or found.keypoints or found.split_file):
        raise FileNotFoundError(
            f"pascal-voc is not under {found._describe()}: `quadmatch data prepare pascal-voc` makes it"
        )
    return found
