"""The parts of a picture of two matched graphs: panels, edges, lines, nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = NDArray[np.float64]

RIGHT, WRONG, EDGE, ALONE = "#1b9e77", "#d7263d", "#9aa5b1", "#c3c9d0"
GAP = 0.2
"""Between the two panels, as a share of a panel's width."""


def fit_panel(points: Points, image: Any) -> tuple[Points, float]:
    """Points in a panel one wide, and the height of the panel."""
    if image is not None:
        height, width = np.asarray(image).shape[:2]
        return points / width, height / width
    if not len(points):
        return points, 0.8
    low, extent = points.min(0), np.ptp(points, axis=0)
    scale = 1 / max(extent.max(), 1e-12)
    height = float(np.clip(extent[1] * scale, 0.4, 1.0))
    return (points - low - extent / 2) * scale + [0.5, height / 2], height


def make_canvas(height: float, size: tuple[float, float] | None = None) -> tuple[Figure, Axes]:
    """A figure that belongs to no window, so that drawing works on a server and in threads."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'quadmatch[plots]'") from error
    figure = Figure(figsize=size or (9.0, 0.8 + 9.0 * height / (2 + GAP)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.axis("off")
    if size is None:
        axes.set_aspect("equal")
        axes.set_xlim(-0.04, 2 + GAP + 0.04)
        axes.set_ylim(height + 0.05, -0.05)
    return figure, axes


def show_image(axes: Axes, image: Any, left: float, height: float) -> None:
    """Put the image, if there is one, into the panel that begins at `left`."""
    if image is not None:
        pixels = np.asarray(image)
        axes.imshow(
            pixels, extent=(left, left + 1, height, 0), cmap="gray", zorder=0, interpolation="bilinear"
        )


def draw_edges(axes: Axes, points: Points, adjacency: NDArray[Any] | None) -> None:
    """Each edge as wide as its weight says."""
    if adjacency is None:
        return
    from matplotlib.collections import LineCollection

    strength = np.maximum(np.abs(adjacency), np.abs(adjacency.T))
    starts, ends = np.nonzero(np.triu(strength, 1))
    widths = 0.3 + 0.8 * strength[starts, ends] / max(float(strength.max(initial=0)), 1e-12)
    segments = np.stack((points[starts], points[ends]), 1)
    axes.add_collection(LineCollection(list(segments), linewidths=widths, colors=EDGE, alpha=0.8, zorder=1))


def draw_lines(
    axes: Axes,
    left: Points,
    right: Points,
    pairs: NDArray[np.int64],
    scores: NDArray[Any],
    judged: NDArray[np.bool_] | None,
) -> None:
    """The match: green and red where it is judged, else coloured by score."""
    from matplotlib.collections import LineCollection

    segments = np.stack((left[pairs[:, 0]], right[pairs[:, 1]]), 1)
    width = float(np.clip(28 / max(len(pairs), 1), 0.5, 1.4))
    if judged is not None:
        colours = np.where(judged, RIGHT, WRONG)
        # Wrong lines are few where it matters: on top, so that they are seen.
        for mark, level in ((True, 2), (False, 3)):
            kept = judged == mark
            axes.add_collection(
                LineCollection(
                    list(segments[kept]),
                    linewidths=width,
                    colors=list(colours[kept]),
                    alpha=0.75,
                    zorder=level,
                )
            )
        return
    lines = LineCollection(list(segments), linewidths=width, cmap="viridis", alpha=0.8, zorder=2)
    lines.set_array(np.asarray(scores, dtype=np.float64))
    lines.set_clim(0, 1)
    axes.add_collection(lines)
    if len(pairs):
        axes.figure.colorbar(lines, ax=axes, fraction=0.025, pad=0.01, label="score")


def draw_nodes(axes: Axes, left: Points, right: Points, pairs: NDArray[np.int64]) -> None:
    """Partners share a colour that runs across the source: a match is seen without following lines."""
    from matplotlib import colormaps

    size = float(np.clip(1800 / max(len(left), len(right), 1), 8, 60))
    order = np.argsort(np.argsort(left[:, 0] + 0.3 * left[:, 1]))
    colours = colormaps["turbo"](0.08 + 0.84 * order / max(len(left) - 1, 1))
    partner = np.full(len(right), -1)
    partner[pairs[:, 1]] = pairs[:, 0]
    matched = np.zeros(len(left), dtype=bool)
    matched[pairs[:, 0]] = True
    found = colours[partner] if len(left) else np.zeros((len(right), 4))
    for points, known, paint in ((left, matched, colours), (right, partner >= 0, found)):
        if known.any():
            x, y = points[known].T
            axes.scatter(x, y, s=size, c=paint[known], edgecolors="white", linewidths=0.6, zorder=4)
        if (~known).any():
            x, y = points[~known].T
            axes.scatter(x, y, s=size, c="white", edgecolors=ALONE, linewidths=1.2, zorder=4)
