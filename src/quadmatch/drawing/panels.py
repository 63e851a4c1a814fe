"""The two panels of a picture of matched graphs: where points lie, the photographs and the edges below them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.datasets.pixels import read_pixels
from quadmatch.drawing.canvas import DARK, EDGE, make_rim

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = NDArray[np.float64]

GAP, CLOSE = 0.2, 0.04
"""Between two panels, as a share of a panel's width; less between pictures, which have edges of their own."""
WIDTH = 9.0
"""Inches of a figure."""
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
    corner: tuple[float, float] = (0.0, 0.0)
    """Its upper left end on the paper."""

    def shift(self, right: float, down: float) -> Panel:
        """The panel elsewhere on the paper."""
        return replace(self, points=self.points + np.array([right, down]), corner=(right, down))


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


@dataclass(frozen=True, eq=False)
class Sheet:
    """Both panels side by side."""

    panels: tuple[Panel, Panel]
    width: float
    height: float

    def place_on(self, axes: Axes) -> None:
        """Give the axes the sheet's extent and its pictures."""
        axes.axis("off")
        axes.set_aspect("equal")
        axes.set_xlim(-0.04, self.width + 0.04)
        axes.set_ylim(self.height + 0.05, -0.05)
        for panel in self.panels:
            show_picture(axes, panel)

    def find_unit(self, inches: float) -> float:
        """How many points of print a panel's width has on so wide a paper."""
        return 72 * inches / (self.width + 0.08)


def lay_panels(points: tuple[Points, Points], images: tuple[Any, Any]) -> Sheet:
    """Both graphs side by side, pictures in the middle of the height."""
    a, b = fit_panel(points[0], images[0], "image_a"), fit_panel(points[1], images[1], "image_b")
    height = max(a.height, b.height)
    start = a.width + (GAP if a.picture is None or b.picture is None else CLOSE)
    down = [(height - panel.height) / 2 if panel.picture is not None else 0.0 for panel in (a, b)]
    return Sheet((a.shift(0.0, down[0]), b.shift(start, down[1])), start + b.width, height)


def show_picture(axes: Axes, panel: Panel) -> None:
    """Put the panel's picture, if there is one, at its place."""
    if panel.picture is not None:
        left, top = panel.corner
        extent = (left, left + panel.width, top + panel.height, top)
        axes.imshow(panel.picture, extent=extent, zorder=0, interpolation="bilinear")


def draw_edges(axes: Axes, panel: Panel, adjacency: NDArray[Any] | None, on_picture: str) -> None:
    """Each edge as wide as its weight says, in the colour that is given where it lies on a picture."""
    if adjacency is None:
        return
    from matplotlib.collections import LineCollection

    strength = np.maximum(np.abs(adjacency), np.abs(adjacency.T))
    starts, ends = np.nonzero(np.triu(strength, 1))
    widths = 0.3 + 0.8 * strength[starts, ends] / max(float(strength.max(initial=0)), 1e-12)
    segments = np.stack((panel.points[starts], panel.points[ends]), 1)
    colour, alpha = (EDGE, 0.8) if panel.picture is None else (on_picture, 0.9)
    lines = LineCollection(list(segments), linewidths=widths, colors=colour, alpha=alpha, zorder=1)
    if panel.picture is not None:  # Light lines are seen on a dark picture, their dark rims on a light one.
        lines.set_path_effects(make_rim(DARK, 2.2, 0.4))
    axes.add_collection(lines)
