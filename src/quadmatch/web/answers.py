"""What the page is sent: matches as JSON, and pictures."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from jaxtyping import Shaped, UInt8

from quadmatch.datasets.picture import Picture
from quadmatch.own_images.answer import Settings, describe_match, describe_pairs
from quadmatch.result import to_numpy
from quadmatch.web.batching import Answer

SIDE = 4096
"""Pixels of the longer side of a picture that is sent to be shown: the page zooms into it."""


def write_answer(answer: Answer, a: Picture, b: Picture, settings: Settings) -> dict[str, Any]:
    """What `quadmatch match` writes, and what the page needs besides: edges, and the match without the constraint."""
    content = describe_match(answer.constrained, a, b, settings)
    for side, graph in zip("ab", (answer.constrained.source, answer.constrained.target)):
        content[f"edges_{side}"] = [] if graph is None else list_edges(to_numpy(graph))
    free = describe_pairs(answer.free, a.keypoints, b.keypoints) | {"orientation": answer.free.orientation}
    return content | {"without_constraint": free}


def list_edges(adjacency: Shaped[np.ndarray, "N N"]) -> list[list[int]]:
    """The joined pairs of nodes, each once."""
    return [[int(i), int(j)] for i, j in np.argwhere(np.triu(adjacency + adjacency.T, 1) != 0)]


def write_preview(pixels: UInt8[np.ndarray, "H W 3"]) -> bytes:
    """A JPEG of the upright picture, no larger than a browser shows well."""
    from PIL import Image

    picture = Image.fromarray(pixels)
    picture.thumbnail((SIDE, SIDE))
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=92)
    return buffer.getvalue()
