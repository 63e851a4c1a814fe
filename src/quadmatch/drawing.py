"""The parts of a picture of two matched graphs: panels, edges, lines, nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.pictures import read_pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = NDArray[np.float64]

RIGHT, WRONG, EDGE, ALONE = "#1b9e77", "#d7263d", "#9aa5b1", "#c3c9d0"
ON_PICTURE = "#f4f6f8"
"""Edges of a graph over a picture, where grey would not be seen."""
GAP, CLOSE = 0.2, 0.04
"""Between two panels, as a share of a panel's width; less between pictures, which have edges of their own."""
TALLEST = 1.3
"""Height of a picture beside the width of a panel: a taller one becomes narrower."""
LARGEST = 1200
"""Pixels of the longer side of a picture in a figure."""


@dataclass(frozen=True, eq=False)
class Panel:
    """Where one graph is drawn: points on a paper whose unit is the width of a panel."""

    points: Points
    width: float
    height: float
    picture: NDArray[np.uint8] | None = None

    def shift(self, right: float, down: float) -> Panel:
        """The points elsewhere on the paper."""
        return replace(self, points=self.points + np.array([right, down]))


def fit_panel(points: Points, image: Any, name: str = "image") -> Panel:
    """A panel of a picture at most one wide, or of the points alone."""
    if image is not None:
        pixels = read_pixels(image, name)
        height, width = pixels.shape[:2]
        scale = min(1 / width, TALLEST / height)
        return Panel(points * scale, width * scale, height * scale, _shrink(pixels))
    if not len(points):
        return Panel(points, 1.0, 0.8)
    low, extent = points.min(0), np.ptp(points, axis=0)
    scale = 1 / max(extent.max(), 1e-12)
    height = float(np.clip(extent[1] * scale, 0.4, 1.0))
    return Panel((points - low - extent / 2) * scale + [0.5, height / 2], 1.0, height)


def _shrink(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """No more pixels than are seen: a large photograph would fill the file and take seconds to draw."""
    longer = max(pixels.shape[:2])
    if longer <= LARGEST:
        return pixels
    from PIL import Image

    picture = Image.fromarray(pixels)
    size = [max(1, round(side * LARGEST / longer)) for side in picture.size]
    return np.asarray(picture.resize((size[0], size[1]), Image.Resampling.LANCZOS))


def make_canvas(
    height: float, width: float = 2 + GAP, size: tuple[float, float] | None = None
) -> tuple[Figure, Axes]:
    """A figure that belongs to no window, so that drawing works on a server and in threads."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'quadmatch[plots]'") from error
    figure = Figure(figsize=size or (9.0, 0.8 + 9.0 * height / width), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.axis("off")
    if size is None:
        axes.set_aspect("equal")
        axes.set_xlim(-0.04, width + 0.04)
        axes.set_ylim(height + 0.05, -0.05)
    return figure, axes


def show_picture(axes: Axes, panel: Panel, left: float, top: float) -> None:
    """Put the panel's picture, if there is one, at its place."""
    if panel.picture is not None:
        axes.imshow(
            panel.picture,
            extent=(left, left + panel.width, top + panel.height, top),
            zorder=0,
            interpolation="bilinear",
        )


def draw_edges(axes: Axes, panel: Panel, adjacency: NDArray[Any] | None) -> None:
    """Each edge as wide as its weight says."""
    if adjacency is None:
        return
    from matplotlib.collections import LineCollection

    strength = np.maximum(np.abs(adjacency), np.abs(adjacency.T))
    starts, ends = np.nonzero(np.triu(strength, 1))
    widths = 0.3 + 0.8 * strength[starts, ends] / max(float(strength.max(initial=0)), 1e-12)
    segments = np.stack((panel.points[starts], panel.points[ends]), 1)
    colour, alpha = (EDGE, 0.8) if panel.picture is None else (ON_PICTURE, 0.55)
    axes.add_collection(
        LineCollection(list(segments), linewidths=widths, colors=colour, alpha=alpha, zorder=1)
    )


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
