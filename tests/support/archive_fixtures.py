"""Tiny archives in the official layouts, with drawn pictures and made-up keypoints."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

WILLOW = ("Car", "Duck", "Face", "Motorbike", "Winebottle")
NAMES = ("Nose", "Tail", "L_Wing", "R_Wing", "Top")
# (class, picture, objects as (flags, number of keypoints)); people's files count from 0.
VOC_TRAIN = {
    "2007_000001": [("car", "", 5), ("motorbike", "", 4)],
    "2008_000002": [("aeroplane", "", 5), ("aeroplane", "truncated", 5), ("car", "difficult", 5)],
    "2008_000003": [("aeroplane", "", 4), ("car", "", 3)],
    "2009_000004": [("car", "", 5), ("car", "occluded", 4)],
    "2010_000005": [("motorbike", "", 0)],
    "2008_000006": [("person", "", 5)],
    "2009_000007": [("person", "", 5)],
    "2008_000008": [("person", "", 5), ("car", "truncated", 5)],
}
VOC_TEST = {
    "2011_000001": [("aeroplane", "", 5), ("car", "", 5)],
    "2011_000002": [("aeroplane", "", 4), ("car", "", 4)],
}
TRAIN_KEPT = [
    "aeroplane/2008_000002_1",
    "aeroplane/2008_000003_1",
    "car/2007_000001_1",
    "car/2008_000003_2",
    "car/2009_000004_1",
    "motorbike/2007_000001_2",
    "motorbike/2010_000005_1",
    "person/2008_000006_0",
]


def draw_picture(seed: int, size: tuple[int, int] = (48, 36), kind: str = "PNG") -> bytes:
    width, height = size
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x * 5 % 256, y * 7 % 256, (x + y + 37 * seed) % 256], -1).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def write_tar(path: Path, files: dict[str, bytes], mode: str = "w") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def willow_files(pictures: int = 23) -> dict[str, bytes]:
    files = {"__MACOSX/WILLOW-ObjectClass/Car/._a.png": b"junk", "WILLOW-ObjectClass/Car/.hidden.png": b"junk"}
    for kind in WILLOW:
        for number in range(pictures):
            files |= _willow_object(f"{kind}/{kind}_{number:03d}", hash_free(kind, number), 10)
    return files | _willow_object("Face/image_0160", 5, 8)


def hash_free(kind: str, number: int) -> int:
    return 100 * WILLOW.index(kind) + number


def _willow_object(name: str, seed: int, count: int) -> dict[str, bytes]:
    points = np.random.default_rng(seed).uniform(2, 34, (2, count))
    stream = io.BytesIO()
    savemat(stream, {"pts_coord": points})
    base = f"WILLOW-ObjectClass/{name}"
    return {f"{base}.mat": stream.getvalue(), f"{base}.png": draw_picture(seed)}


def voc_files(parts: dict[str, list], prefix: str = "TrainVal/VOCdevkit/VOC2011") -> dict[str, bytes]:
    files = {}
    for seed, (picture, objects) in enumerate(parts.items()):
        rows = "".join(
            f"<object><name>{kind}</name>"
            + "".join(f"<{flag}>{int(flag == flagged)}</{flag}>" for flag in ("difficult", "occluded", "truncated"))
            + "</object>"
            for kind, flagged, _ in objects
        )
        text = f"<annotation><size><width>48</width><height>36</height></size>{rows}</annotation>"
        files[f"{prefix}/Annotations/{picture}.xml"] = text.encode()
        files[f"{prefix}/JPEGImages/{picture}.jpg"] = draw_picture(seed, kind="JPEG")
        files[f"{prefix}/SegmentationClass/{picture}.png"] = b"not needed"
    return files


def list_objects(parts: dict[str, list]) -> list[tuple[str, int]]:
    found = []
    for picture, objects in parts.items():
        for number, (kind, _, count) in enumerate(objects, 1):
            found.append((f"{kind}/{picture}_{0 if kind == 'person' else number}", count))
    return found


def keypoint_files(parts: dict[str, list]) -> dict[str, bytes]:
    files = {}
    for seed, (name, count) in enumerate(list_objects(parts)):
        places = np.random.default_rng(seed).uniform(8, 30, (count, 2))
        if count > 4:
            places[4] = (45, 2)  # outside of the box
        rows = "".join(
            f'<keypoint name="{label}" visible="{int(x < 25)}" x="{x:.2f}" y="{y:.2f}" z="0"/>'
            for label, (x, y) in zip(NAMES, places)
        )
        bounds = '<visible_bounds height="28.0" width="30.0" xmin="5.0" ymin="4.0"/>'
        text = f"<annotation>{bounds}<keypoints>{rows}</keypoints></annotation>"
        files[f"annotations/{name}.xml"] = text.encode()
    return files


def split_file(train: list[str], test: list[str]) -> bytes:
    def pack(names: list[str]) -> np.ndarray:
        kinds = sorted({name.partition("/")[0] for name in names})
        rows = np.empty(len(kinds), dtype=object)
        for place, kind in enumerate(kinds):
            rows[place] = [f"{name}.xml" for name in names if name.startswith(f"{kind}/")]
        return rows

    stream = io.BytesIO()
    np.savez(stream, train=pack(train), test=pack(test))
    return stream.getvalue()


def make_voc(folder: Path, *parts: dict[str, list], prefix: str = "TrainVal/VOCdevkit/VOC2011") -> Path:
    """A mirror with the three archives, of the pictures in `parts`."""
    some = {picture: objects for part in parts for picture, objects in part.items()}
    write_tar(folder / "a" / "VOCtrainval_25-May-2011.tar", voc_files(some, prefix))
    write_tar(folder / "b" / "c" / "voc2011_keypoints_Feb2012.tgz", keypoint_files(some), "w:gz")
    names = [[name for name, _ in list_objects(part)] for part in (VOC_TRAIN, VOC_TEST)]
    (folder / "voc2011_pairs.npz").write_bytes(split_file(*names))
    return folder
