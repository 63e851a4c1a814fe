"""Functions of three shares that sum to one, as coloured triangles and along one side of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.drawing.canvas import DARK, WRONG, make_figure
from quadmatch.drawing.curves import Curve, plot_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = NDArray[np.float64]
Values = Mapping[str, NDArray[np.float64]]

CORNERS = np.array([[1.0, 0.0], [0.0, 0.0], [0.5, np.sqrt(0.75)]])
"""Where all of the first, second and third share is drawn: C, B and A."""
NAMES: tuple[tuple[str, str, float], ...] = (
    ("C = (1, 0, 0)", "right", -0.09),
    ("B = (0, 1, 0)", "left", -0.09),
    ("A = (0, 0, 1), true", "center", 0.06),
)


def draw_simplices(places: Points, surfaces: Values, side: Points, walks: Values) -> Figure:
    """A triangle for each function of the `places`, and below each its course along `side`, from B to C."""
    figure = make_figure(4.4 * len(surfaces), 6.6)
    grid = figure.add_gridspec(2, len(surfaces), height_ratios=(1.6, 1))
    for column, (name, values) in enumerate(surfaces.items()):
        _colour_triangle(figure.add_subplot(grid[0, column]), places, values, name)
        axes = figure.add_subplot(grid[1, column])
        share = side[:, 0].tolist()
        ends = walks[name][[0, -1]].tolist()
        curves = {name: Curve(share, walks[name].tolist(), series=0, dash=0)}
        plot_curves(axes, curves)
        axes.set_xlabel("share of C, from B to C")
        axes.set_ylabel("" if column else "loss")
        axes.plot([share[0], share[-1]], ends, color=WRONG, linestyle="--", linewidth=1.2, label="straight from B to C")
        axes.set_ylim(0, 1.12 * float(walks[name].max()))
        axes.legend(frameon=False, fontsize=9, loc="lower center")
    return figure


def _colour_triangle(axes: Axes, places: Points, values: NDArray[np.float64], title: str) -> None:
    """Cooler is smaller; lines join equal values."""
    x, y = (places @ CORNERS).T
    levels = np.linspace(values.min(), values.max(), 21)
    shown: Any = axes.tricontourf(x, y, values, levels=levels, cmap="viridis")
    axes.tricontour(x, y, values, levels=levels[::2], colors="white", linewidths=0.5, alpha=0.6)
    closed = CORNERS[[0, 1, 2, 0]]
    axes.plot(*closed.T, color=DARK, linewidth=1)
    for (text, align, above), (left, bottom) in zip(NAMES, CORNERS):
        axes.plot(left, bottom, "o", color=DARK, markersize=5, zorder=3)
        end = {"right": 0.12, "left": -0.12, "center": 0.0}[align]
        axes.text(left + end, bottom + above, text, ha=align, va="center", fontsize=9)
    axes.set_title(title, fontsize=11, pad=14)
    axes.set_aspect("equal")
    axes.set_xlim(-0.15, 1.15)
    axes.axis("off")
    axes.figure.colorbar(shown, ax=axes, fraction=0.04, pad=0.02, format="%.1f")
