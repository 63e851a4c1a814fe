"""What the weight of an edge stands for: the angle between the attributes of its two ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.drawing.canvas import DARK, SERIES, make_figure
from quadmatch.drawing.heat_maps import show_graph, show_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

MOST_CHANNELS = 24
"""Attributes of a node that are shown."""
ENDS = (SERIES[0], SERIES[1])
"""Colours of the two ends of an edge, wherever they are shown."""


def draw_edge_kernel(
    picture: Any, points: Array, edges: Array, attributes: Array, cosines: Array, kernel: str, weights: Array
) -> Figure:
    """A graph, and of the edges with the most and the least similar ends: attributes, their angle, the weight."""
    figure = make_figure(10.5, 4.2)
    grid = figure.add_gridspec(2, 3, width_ratios=(1.5, 1.35, 1))
    graph = figure.add_subplot(grid[:, 0])
    placed = show_graph(graph, picture, points, weights, "a graph and two of its edges")
    pairs = np.argwhere(np.triu(edges, 1) > 0)
    ranked = pairs[np.argsort(-cosines[pairs[:, 0], pairs[:, 1]], kind="stable")]
    chosen = (("most similar ends", ranked[0]), ("least similar ends", ranked[-1]))
    for row, (title, (i, j)) in enumerate(chosen):
        letter = "ab"[row]
        _mark(graph, placed[[i, j]], letter)
        strips = figure.add_subplot(grid[row, 1])
        shown, name = attributes[[i, j], :MOST_CHANNELS], f"edge {letter}, {title}: their attributes"
        show_rows(strips, shown, name, most=2.5 * float(attributes.std()))
        strips.set_aspect("equal")
        strips.set_yticks([0, 1], ["$p_i$", "$p_j$"], fontsize=10)
        for tick, colour in zip(strips.get_yticklabels(), ENDS):
            tick.set_color(colour)
        angle = figure.add_subplot(grid[row, 2])
        _show_angle(angle, float(cosines[i, j]), f"{kernel} = {weights[i, j]:.2f}")
    return figure


def _mark(axes: Axes, ends: Array, letter: str) -> None:
    """An edge with its two ends in their colours."""
    axes.plot(*ends.T, color=DARK, linewidth=3.4, zorder=2)
    axes.plot(*ends.T, color="white", linewidth=1.6, zorder=3)
    axes.scatter(ends[:, 0], ends[:, 1], s=70, c=list(ENDS), edgecolors="white", linewidths=1.2, zorder=5)
    middle = ends.mean(0)
    box = {"boxstyle": "circle,pad=0.2", "facecolor": "white", "edgecolor": DARK, "linewidth": 0.8}
    axes.text(middle[0], middle[1], letter, ha="center", va="center", fontsize=10, bbox=box, zorder=6)


def _show_angle(axes: Axes, cosine: float, weight: str) -> None:
    """Both attributes as arrows of length one, the angle between them, and what follows from it."""
    from matplotlib.patches import Arc

    angle = float(np.arccos(np.clip(cosine, -1, 1)))
    for turn, colour, name in ((0.0, ENDS[0], "$p_i$"), (angle, ENDS[1], "$p_j$")):
        x, y = np.cos(turn), np.sin(turn)
        axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2})
        axes.text(1.15 * x, 1.15 * y, name, color=colour, ha="center", va="center", fontsize=10)
    axes.add_patch(Arc((0, 0), 0.7, 0.7, theta2=np.degrees(angle), color=DARK))
    axes.text(0.5 * np.cos(angle / 2), 0.5 * np.sin(angle / 2), "θ", ha="center", va="center", fontsize=10)
    axes.set_title(f"cos θ = {cosine:.2f},  {weight}", fontsize=9)
    axes.set_xlim(min(-0.2, 1.3 * np.cos(angle)), 1.3)
    axes.set_ylim(-0.15, max(0.5, 1.25 * np.sin(angle)))
    axes.set_aspect("equal")
    axes.axis("off")
