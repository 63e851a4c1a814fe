"""Matrices as small heat maps in a row, with signs between them: how one tensor becomes the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.drawing.canvas import DARK, WRONG
from quadmatch.drawing.panels import draw_edges, fit_panel, show_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

EDGES = "#ffd43b"


def show_matrix(axes: Axes, values: Array, title: str, *, most: float | None = 1.0, least: float = 0.0) -> Any:
    """A matrix as squares, the darker the more, between two fixed values so that neighbours can be compared."""
    shown = axes.imshow(values, cmap="Blues", vmin=least, vmax=values.max() if most is None else most, aspect="equal")
    axes.set_title(title, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])
    return shown


def frame_cells(axes: Axes, cells: Array) -> None:
    """A red frame around each cell that is not zero: the true matches."""
    from matplotlib.patches import Rectangle

    for row, column in np.argwhere(cells):
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=WRONG, linewidth=1.2))


def show_rows(axes: Axes, rows: Array, title: str, most: float | Array | None = None) -> None:
    """Attributes of nodes as rows of coloured squares; `most` is the full colour, each channel's own if not given."""
    scaled = rows / np.maximum(np.abs(rows).max(0, keepdims=True) if most is None else most, 1e-12)
    axes.imshow(scaled, cmap="PuOr", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    axes.set_title(title, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])


def show_graph(axes: Axes, picture: Any, points: Array, edges: Array, title: str) -> Array:
    """A photograph with its graph; where the points lie on the axes."""
    panel = fit_panel(points, picture)
    show_picture(axes, panel)
    draw_edges(axes, panel, edges, EDGES)
    axes.scatter(panel.points[:, 0], panel.points[:, 1], s=26, c="white", edgecolors=DARK, linewidths=0.8, zorder=4)
    axes.set_xlim(0, panel.width)
    axes.set_ylim(panel.height, 0)
    axes.set_aspect("equal")
    axes.set_title(title, fontsize=9)
    axes.axis("off")
    return panel.points


def show_sign(axes: Axes, text: str, below: str = "") -> None:
    """A sign between two matrices, as an arrow, and what it stands for."""
    axes.axis("off")
    style: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "center", "color": DARK}
    axes.annotate(text, (0.5, 0.5), (0, 0), va="center", fontsize=17, **style)
    axes.annotate(below, (0.5, 0.5), (0, -14), va="top", fontsize=8, **style)
