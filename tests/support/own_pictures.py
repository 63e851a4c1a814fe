"""Pictures, keypoints and a matcher that is quick, for tests of what people do with their own images."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from quadmatch.features.levels import build_extractor
from quadmatch.features.vgg import VGG16
from quadmatch.matcher import Matcher
from quadmatch.methods.dot_product import DotProduct

POINTS = np.random.default_rng(1).uniform(6, 42, (9, 2)).round(2)


def draw_pixels(seed: int = 0, height: int = 48, width: int = 64) -> np.ndarray:
    """Coarse coloured noise, which has corners."""
    blocks = np.random.default_rng(seed).integers(0, 256, (-(-height // 4), -(-width // 4), 3), dtype=np.uint8)
    return np.kron(blocks, np.ones((4, 4, 1), np.uint8))[:height, :width]


def write_pair(folder: Path, name: str = "picture") -> tuple[list[str], np.ndarray]:
    """A picture with keypoints, twice, the second time in another order; arguments of `match`, and the order."""
    folder.mkdir(parents=True, exist_ok=True)
    order = np.random.default_rng(2).permutation(len(POINTS))
    words = []
    for side, points in (("a", POINTS), ("b", POINTS[order])):
        image, file = folder / f"{name} {side}.png", folder / f"{name} {side}.json"
        Image.fromarray(draw_pixels()).save(image)
        file.write_text(json.dumps(points.tolist()))
        words += [str(image), str(file)]
    return [words[0], words[2], "--points-a", words[1], "--points-b", words[3]], order


@lru_cache(maxsize=1)
def make_matcher() -> Matcher:
    """Random weights on small crops: it still knows a picture again."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        state = VGG16("relu5_3").state_dict()
    extractor = build_extractor("frozen", weights=state, precision="float32,contiguous,1", size=48)
    return Matcher(extractor, DotProduct(temperature=0.02), decoding={}).eval()
