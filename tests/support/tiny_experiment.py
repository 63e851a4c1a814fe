"""A data set in Willow's layout, network weights and an experiment on them that trains in a second."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from quadmatch.datasets.willow import CATEGORIES
from quadmatch.experiments.reading import Experiment, check_experiment
from quadmatch.features.vgg import VGG16


def write_willow(root: Path, pictures: int = 11) -> None:
    """Objects of a class are one figure of ten coloured spots, moved: there is something to learn."""
    from PIL import Image
    from scipy.io import savemat

    for number, category in enumerate(CATEGORIES):
        folder = root / "WILLOW-ObjectClass" / category
        folder.mkdir(parents=True)
        random = np.random.default_rng(number)
        figure, colours = random.uniform(6, 26, (10, 2)), random.integers(0, 256, (10, 3))
        for index in range(pictures):
            points = figure + random.normal(0, 0.5, figure.shape) + random.uniform(-3, 3, 2)
            pixels = np.full((32, 32, 3), 128, dtype=np.uint8)
            for (x, y), colour in zip(points.round().astype(int), colours):
                pixels[y - 1 : y + 2, x - 1 : x + 2] = colour
            Image.fromarray(pixels).save(folder / f"{index:03d}.png")
            savemat(str(folder / f"{index:03d}.mat"), {"pts_coord": points.T})


def write_weights(path: Path) -> None:
    """VGG16 as it is initialised, not trained."""
    from safetensors.torch import save_file

    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_file(VGG16("relu5_3").state_dict(), path)


def write_tiny(folder: Path) -> Path:
    """Everything that `tiny_experiment` needs."""
    write_willow(folder / "data")
    write_weights(folder / "vgg16.safetensors")
    return folder


def tiny_experiment(folder: Path, changes: Sequence[str] = ()) -> Experiment:
    """qc-DGM₁ on frozen features."""
    tables = {
        "data": {"name": "willow", "root": str(folder / "data"), "size": 32},
        "features": {
            "level": "frozen",
            "weights": str(folder / "vgg16.safetensors"),
            "cache": str(folder / "cache"),
            "precision": "float32,channels_last,1",
        },
        "head": {"method": "dgm1", "options": {"layers": 1, "width": 16, "dropout": 0.2}},
        "constraint": {"network": {"outer": 1}},
        "training": {
            "steps": 6,
            "classes": 2,
            "objects": 2,
            "learning_rate": 3e-3,
            "log_every": 2,
            "threads": 1,
            "average_decay": 0.5,
            "validation_pairs": 2,
            "checkpoint_seconds": 1000.0,
        },
    }
    return check_experiment(tables, "tiny.toml", changes)


def write_experiment(experiment: Experiment, path: Path) -> Path:
    """The experiment as a TOML file."""
    lines = []
    for section, table in experiment.model_dump(mode="json", exclude_none=True).items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {_write_value(value)}" for key, value in table.items()]
    path.write_text("\n".join(lines))
    return path


def _write_value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_write_value(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)
