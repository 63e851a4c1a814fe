"""Two graphs of noisy points, matched with and without the constraint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from quadmatch.delaunay import delaunay
from quadmatch.graphs.match_graphs import match_graphs
from quadmatch.result import MatchResult

NODES = 30
JITTER = 0.015
NOISE = 1.6
"""Of the node features: enough that they alone go wrong."""


def show_graphs(out: Path, seed: int = 0, say: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Match, draw and explain; what the report shows."""
    rng = np.random.default_rng(seed)
    points = rng.random((NODES, 2))
    order = rng.permutation(NODES)
    moved = (points + rng.normal(0, JITTER, points.shape))[order]
    features = rng.normal(size=(NODES, 8))
    noisy = (features + rng.normal(0, NOISE, features.shape))[order]
    unary = features @ noisy.T
    a, b = (delaunay(torch.from_numpy(one)).double().numpy() for one in (points, moved))
    truth = np.argsort(order)
    shown: list[dict[str, Any]] = []
    say(f"Two graphs of {NODES} points, the second jittered and shuffled; edges by Delaunay triangulation.")
    for name, file, weight in (
        ("node features alone", "features-alone.png", 0.0),
        ("with the quadratic constraint", "graphs.png", None),
    ):
        result = match_graphs(a, b, unary, weight=weight)
        assert isinstance(result, MatchResult)
        right = int((truth[result.pairs[:, 0]] == result.pairs[:, 1]).sum())
        path = out / file
        title = f"{name}: {right} of {NODES} right"
        drawn: dict[str, Any] = {"labels": False, "legend": False, "title": ""}
        result.plot(points, moved, source=a, target=b, truth=truth, path=path, **drawn)
        say(f"  {title}, drawn in {path}")
        shown.append({"way": name, "file": file, "right": right, "points": NODES})
    return shown
