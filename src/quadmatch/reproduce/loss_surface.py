"""Two losses over all soft matches of one node with three: what they say of doubt and of error (figure 5)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float

from quadmatch.drawing.simplex import draw_simplices
from quadmatch.graph import Graph, GraphPair
from quadmatch.losses import false_matching, permutation
from quadmatch.matching import Loss, Matching
from quadmatch.reproduce.items import Output, Settings

CORNERS = {"A": (0.0, 0.0, 1.0), "B": (0.0, 1.0, 0.0), "C": (1.0, 0.0, 0.0)}
"""The three certain matches; A is the truth."""
LOSSES: Mapping[str, Loss] = {"cross-entropy": permutation(), "false matching": false_matching(alpha=2.0, beta=0.1)}
STEPS = 40
"""Steps along a side of the triangle."""
LEAST = 1e-4
"""How near to a corner the surfaces are looked at: in it the cross-entropy is infinite."""


def measure_losses(places: Float[np.ndarray, "P 3"]) -> dict[str, Float[np.ndarray, " P"]]:
    """Both losses at soft matches of one node with three of which the third is the true one."""
    one, three = _make_graph(1), _make_graph(3)
    pair = GraphPair(one, three, torch.tensor([[[False, False, True]]]))
    soft = torch.from_numpy(places)[:, None, None]
    said = [Matching(match, match, one.adjacency, three.adjacency) for match in soft]
    return {name: np.array([float(loss(match, pair)) for match in said]) for name, loss in LOSSES.items()}


def _make_graph(nodes: int) -> Graph:
    """So many nodes without edges; where they lie does not matter."""
    mask = torch.ones(1, nodes, dtype=torch.bool)
    return Graph(torch.zeros(1, nodes, 2), mask, torch.zeros(1, nodes, nodes))


def list_places() -> Float[np.ndarray, "P 3"]:
    """A grid over the triangle, moved inwards a little."""
    counts = [(i, j, STEPS - i - j) for i in range(STEPS + 1) for j in range(STEPS + 1 - i)]
    return _move_in(np.array(counts, dtype=np.float64) / STEPS)


def walk_side() -> Float[np.ndarray, "P 3"]:
    """From the wrong corner B to the wrong corner C."""
    share = np.linspace(0, 1, STEPS + 1)[:, None]
    return _move_in((1 - share) * np.array(CORNERS["B"]) + share * np.array(CORNERS["C"]))


def _move_in(places: Float[np.ndarray, "P 3"]) -> Float[np.ndarray, "P 3"]:
    return (1 - 3 * LEAST) * places + LEAST


def make_figure(settings: Settings) -> Output:
    """Both surfaces from the package's own losses, and their course between the two wrong corners."""
    places, side = list_places(), walk_side()
    surfaces, walks = measure_losses(places), measure_losses(side)
    centre = measure_losses(np.full((1, 3), 1 / 3))
    corners = measure_losses(_move_in(np.array(list(CORNERS.values()))))
    lines = [["loss", "at A, the truth", "at B and C", "between B and C", "undecided"]]
    for name, walk in walks.items():
        at, middle = corners[name], walk[STEPS // 2]
        lines.append([name, *(f"{value:.2f}" for value in (at[0], at[1], middle, centre[name][0]))])
    record = {
        "corners": CORNERS,
        "nearest to a corner": LEAST,
        "at corners": {name: values.round(5).tolist() for name, values in corners.items()},
        "from B to C": {name: values.round(5).tolist() for name, values in walks.items()},
        "undecided": {name: round(float(values[0]), 5) for name, values in centre.items()},
    }
    caption = (
        "One node, three that it may be matched to; A is true, B and C are wrong. False matching is high, bounded and "
        "the same wherever between B and C the match lies; cross-entropy has no bound there, and is lower between B "
        "and C than at them."
    )
    figure = draw_simplices(places, surfaces, side, walks)
    return Output("Cross-entropy and false matching on a toy example (figure 5)", caption, lines, record, figure)
