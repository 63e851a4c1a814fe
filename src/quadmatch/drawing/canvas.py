"""A figure to draw on, its colours, and how it becomes a file: what all drawings share."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quadmatch.files import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT, WRONG, EDGE, DARK = "#1b9e77", "#d7263d", "#9aa5b1", "#18212b"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f")
"""Colours of lines in one plot, in their order, those of Okabe and Ito, which colour-blind people tell apart too."""


def make_canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of that size in inches with axes to draw on."""
    figure = make_figure(width, height)
    return figure, figure.add_subplot()


def make_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches that belongs to no window: drawing works on a server and in threads."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install matplotlib") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def make_rim(colour: str, width: float, alpha: float) -> list[Any]:
    """A wider line below each line of a collection, in points of print, so that it is seen on any background."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground=colour, alpha=alpha)]


def count_whole(axis: Any) -> None:
    """Let an axis of nodes, steps or outliers show whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def finish(figure: Figure, path: str | Path | None) -> Figure:
    """The figure, which is also written if a path is given."""
    if path is not None:
        save_figure(figure, path)
    return figure


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write PNG, SVG or PDF, as the name ends, whole or not at all."""
    kind = check_format(path)
    buffer = io.BytesIO()
    # No date inside: the same figure gives the same bytes.
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    figure.savefig(buffer, format=kind, dpi=160, bbox_inches="tight", metadata=dates)
    return write_file(path, buffer.getvalue())


def check_format(path: str | Path) -> str:
    """The format that a name asks for."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise ValueError(f"path must end in .png, .svg or .pdf, got {Path(path).name!r}")
    return kind
