"""A list of pairs by workers on Ray: two with one thread each beside one, and beside one process without Ray."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from quadmatch.bench.measurement import Row, make_row, one_thread
from quadmatch.datasets.photo_warps import PHOTOGRAPHS, draw_view
from quadmatch.launch.cluster import Cluster, join_cluster
from quadmatch.launch.pairs import match_on_ray
from quadmatch.matcher import Matcher
from quadmatch.models.load import load
from quadmatch.own_images.answer import Settings
from quadmatch.own_images.bulk import match_many
from quadmatch.own_images.engine import Engine, Report, match_here
from quadmatch.own_images.pair_lists import Row as Pair

PICTURES, SIZE, POINTS, REQUIRED = 300, 256, 40, 1.8
MEMORY = 2**29


def run(pictures: int = PICTURES, model: str = "default") -> list[Row]:
    """Seconds of two workers beside those of one; Ray runs before the clock does, the workers start after it."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with TemporaryDirectory(prefix="quadmatch-") as name, one_thread():
        folder = Path(name)
        pairs = write_pictures(folder, pictures)
        measure = partial(time_engine, pairs, folder, model)
        alone, _ = measure("local", match_here)
        with join_cluster(Cluster(workers=2), MEMORY):
            one, report = measure("one", match_on_ray(Cluster(workers=1)))
            two, _ = measure("two", match_on_ray(Cluster(workers=2)))
        texts = [(folder / f"{name}.jsonl").read_bytes() for name in ("local", "one", "two")]
    size = f"{len(pairs)} pairs of {report.pictures} pictures, {POINTS} points, model {Path(model).name}"
    row = make_row("match-many on Ray, seconds: 2 workers × 1 thread beside 1 × 1", size, two, one, REQUIRED)
    row |= {"seconds_of_the_engine_local": alone, "pictures_computed": report.prepared}
    row |= {"same_bytes": len(set(texts)) == 1, "load_of_the_machine": os.getloadavg()[0]}
    return [row]


def write_pictures(folder: Path, count: int) -> list[Pair]:
    """Views of photographs with keypoints at random places; each picture is paired with the next."""
    from PIL import Image

    files = [file for part in PHOTOGRAPHS.values() for file in part]
    random = np.random.default_rng(0)
    for number in range(count):
        view = draw_view(files[number % len(files)], 0, number, SIZE)
        Image.fromarray(view()).save(folder / f"{number}.jpg", quality=92)
        points = random.uniform(8, SIZE - 8, (POINTS, 2)).round(2).tolist()
        (folder / f"{number}.json").write_text(json.dumps(points))
    names = [(f"{number}.jpg", f"{number}.json", None) for number in range(count)]
    return [Pair(number + 1, one, names[(number + 1) % count]) for number, one in enumerate(names)]


def time_engine(pairs: list[Pair], folder: Path, model: str, name: str, engine: Engine) -> tuple[float, Report]:
    """Seconds on the clock of one engine, and what it reports."""
    began = perf_counter()
    out, settings = folder / f"{name}.jsonl", Settings(model)
    report = match_many(pairs, folder, out, _load, settings, memory=MEMORY, engine=engine)
    return perf_counter() - began, report


def _load(name: str, precision: str | None) -> Matcher:
    return load(name, precision=precision)
