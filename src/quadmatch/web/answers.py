"""Matches as JSON, in the format that `quadmatch match` writes, and the pictures that the page shows."""

from __future__ import annotations

from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped, UInt8

from quadmatch.matches import FORMAT
from quadmatch.result import MatchResult, to_numpy
from quadmatch.web.batching import Answer

SIDE = 1600
"""Pixels of the longer side of a picture that is sent to be shown."""


class Shown(NamedTuple):
    """One of the two pictures of a request."""

    name: str
    size: tuple[int, int]
    """Width and height."""
    points: Float[np.ndarray, "K 2"]


def write_match(result: MatchResult, a: Shown, b: Shown) -> dict[str, Any]:
    """Pairs, scores and points that were left alone."""
    pairs = to_numpy(result.pairs).reshape(-1, 2)
    coordinates = np.concatenate([a.points[pairs[:, 0]], b.points[pairs[:, 1]]], 1)
    return {
        "pairs": pairs.tolist(),
        "scores": [round(float(score), 6) for score in to_numpy(result.scores)],
        "coordinates": coordinates.tolist(),
        "unmatched_a": sorted(set(range(len(a.points))) - set(pairs[:, 0].tolist())),
        "unmatched_b": sorted(set(range(len(b.points))) - set(pairs[:, 1].tolist())),
    }


def write_answer(
    answer: Answer, a: Shown, b: Shown, *, model: str, precision: str, partial: bool
) -> dict[str, Any]:
    """What `quadmatch match` writes, and what the page needs besides: edges, and the match without the constraint."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "model": model,
        "precision": precision,
        "constraint": True,
        "detect": None,
        "partial": partial,
        "image_a": a.name,
        "image_b": b.name,
        **write_match(answer.constrained, a, b),
    }
    graphs = answer.constrained.source, answer.constrained.target
    for side, shown, graph in zip("ab", (a, b), graphs):
        content |= {
            f"size_{side}": list(shown.size),
            f"points_file_{side}": None,
            f"points_{side}": shown.points.tolist(),
            f"names_{side}": None,
            f"box_{side}": None,
            f"edges_{side}": [] if graph is None else list_edges(to_numpy(graph)),
        }
    return content | {"warnings": [], "without_constraint": write_match(answer.free, a, b)}


def list_edges(adjacency: Shaped[np.ndarray, "N N"]) -> list[list[int]]:
    """The joined pairs of nodes, each once."""
    return [[int(i), int(j)] for i, j in np.argwhere(np.triu(adjacency + adjacency.T, 1) != 0)]


def write_preview(pixels: UInt8[np.ndarray, "H W 3"]) -> bytes:
    """A JPEG of the upright picture, no larger than a screen needs."""
    from PIL import Image

    picture = Image.fromarray(pixels)
    picture.thumbnail((SIDE, SIDE))
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=92)
    return buffer.getvalue()
