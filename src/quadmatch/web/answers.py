"""Matches as JSON, in the format that `quadmatch match` writes, and the pictures that the page shows."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped, UInt8

from quadmatch.result import MatchResult, to_numpy
from quadmatch.web.batching import Answer

SIDE = 1600
"""Pixels of the longer side of a picture that is sent to be shown."""


def write_match(result: MatchResult) -> dict[str, Any]:
    """Pairs, scores and points that were left alone."""
    pairs = to_numpy(result.pairs)
    rows, columns = result.assignment.shape
    return {
        "pairs": pairs.tolist(),
        "scores": [round(float(score), 6) for score in to_numpy(result.scores)],
        "unmatched_a": sorted(set(range(rows)) - set(pairs[:, 0].tolist())),
        "unmatched_b": sorted(set(range(columns)) - set(pairs[:, 1].tolist())),
    }


def write_answer(
    answer: Answer, points_a: Float[np.ndarray, "N 2"], points_b: Float[np.ndarray, "M 2"], model: str
) -> dict[str, Any]:
    """Everything about a pair that the page draws, matched both ways."""
    return {
        "model": model,
        **write_match(answer.constrained),
        "points_a": points_a.tolist(),
        "points_b": points_b.tolist(),
        "edges_a": list_edges(to_numpy(answer.constrained.source)),  # type: ignore[arg-type]
        "edges_b": list_edges(to_numpy(answer.constrained.target)),  # type: ignore[arg-type]
        "without_constraint": write_match(answer.free),
    }


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
