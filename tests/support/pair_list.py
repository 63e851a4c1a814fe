"""A list of pairs of small pictures and a small model on disk, which processes of their own can load."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from own_pictures import POINTS, draw_pixels
from PIL import Image
from tiny_experiment import tiny_experiment, write_tiny

from quadmatch.training.fit import fit

PICTURES, PAIRS, BROKEN = 6, 40, 11
"""Pictures that can be read, pairs, and the row of one that cannot."""


def write_pair_list(folder: Path) -> Path:
    """Pictures, keypoints, `pairs.csv` and the model `run`; the list."""
    tiny = write_tiny(folder / "tiny")
    fit(tiny_experiment(tiny, ["training.steps=1"]), folder / "run", say=lambda line: None, board=False)
    for number in range(PICTURES):
        Image.fromarray(draw_pixels(number)).save(folder / f"{number}.png")
        (folder / f"{number}.json").write_text(json.dumps((POINTS + number / 10).tolist()))
    (folder / "broken.png").write_bytes(b"nothing")
    lines = ["image_a,points_a,image_b,points_b"]
    for i, j in np.random.default_rng(0).integers(0, PICTURES, (PAIRS, 2)):
        lines.append(f"{i}.png,{i}.json,{j}.png,{j}.json")
    lines[BROKEN] = "broken.png,0.json,1.png,1.json"
    pairs = folder / "pairs.csv"
    pairs.write_text("\n".join(lines) + "\n")
    return pairs
