"""Curves: one quantity against another, with its spread, for several methods."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quadmatch.drawing.canvas import SERIES, count_whole, finish, make_canvas, make_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = Sequence[float | int]
DASHES, MARKERS = ("-", "--", "-.", ":"), ("o", "s", "^", "D")
MOST_MARKED = 20
"""Points of a curve up to which each is marked; a curve over training steps is a plain line."""


@dataclass(frozen=True)
class Curve:
    """One line: values at places, and how far they spread."""

    x: Numbers
    y: Numbers
    spread: Numbers | None = None
    """Standard deviation at each place, drawn as a band around the line."""
    series: int | None = None
    """Which colour and marker; else those of its place among the curves."""
    dash: int | None = None
    """Which kind of line; else that of its place among the curves."""

    def __post_init__(self) -> None:
        lengths = [len(self.x), len(self.y)] + ([] if self.spread is None else [len(self.spread)])
        if len(set(lengths)) > 1:
            raise ValueError(f"x, y and spread of a curve must be equally long, got {lengths}")


def draw_curves(
    curves: Mapping[str, Curve],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    logarithmic: bool = False,
    path: str | Path | None = None,
) -> Figure:
    """All curves in one plot with a legend; `logarithmic` is the y axis, on which values up to 0 are left out.

    A value that is not finite, as a loss that explodes, leaves a gap. With `path` the figure is also written there.
    """
    figure, axes = make_canvas(6.4, 4.2)
    plot_curves(axes, curves, logarithmic=logarithmic)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title, fontsize=11)
    if curves:
        axes.legend(frameon=False, fontsize=9)
    return finish(figure, path)


def draw_grid(
    panels: Mapping[str, Mapping[str, Curve]],
    *,
    x_label: str,
    y_label: str = "",
    logarithmic: Collection[str] = (),
    columns: int = 2,
    path: str | Path | None = None,
) -> Figure:
    """Several plots in a grid, each under its name; `logarithmic` names those with such a y axis.

    One legend below serves all: a label means the same in each.
    """
    rows = -(-len(panels) // columns)
    figure = make_figure(4.6 * columns, 3.3 * rows + 0.6)
    labelled: dict[str, Any] = {}
    for number, (name, curves) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, columns, number + 1)
        plot_curves(axes, curves, logarithmic=name in logarithmic)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel(x_label if number >= len(panels) - columns else "")
        axes.set_ylabel("" if number % columns else y_label)
        for line, label in zip(*axes.get_legend_handles_labels()):
            labelled.setdefault(label, line)
    across = len(labelled) if len(labelled) <= 2 * columns else -(-len(labelled) // 2)
    style: dict[str, Any] = {"loc": "outside lower center", "ncols": max(across, 1), "handlelength": 3.2}
    figure.legend(list(labelled.values()), list(labelled), frameon=False, fontsize=9, **style)
    return finish(figure, path)


def plot_curves(axes: Axes, curves: Mapping[str, Curve], *, logarithmic: bool = False) -> None:
    """Draw curves into a plot; values that cannot be shown leave gaps."""
    for number, (label, curve) in enumerate(curves.items()):
        _plot_curve(axes, curve, label, number, logarithmic)
    if logarithmic:
        axes.set_yscale("log")
    if all(float(value).is_integer() for curve in curves.values() for value in curve.x):
        count_whole(axes.xaxis)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _plot_curve(axes: Axes, curve: Curve, label: str, number: int, logarithmic: bool) -> None:
    series, dash = (number if given is None else given for given in (curve.series, curve.dash))
    colour = SERIES[series % len(SERIES)]
    x, y = (np.asarray(values, dtype=np.float64) for values in (curve.x, curve.y))
    y = np.where(np.isfinite(y) & ((y > 0) | (not logarithmic)), y, np.nan)
    marker = MARKERS[series % len(MARKERS)] if len(x) <= MOST_MARKED else ""
    axes.plot(x, y, color=colour, linestyle=DASHES[dash % len(DASHES)], marker=marker, markersize=4.5, label=label)
    if curve.spread is not None:
        spread = np.asarray(curve.spread, dtype=np.float64)
        low = y - spread
        if logarithmic:  # The band ends at the smallest value where it would reach below zero.
            low = np.where(low > 0, low, np.nanmin(y, initial=np.inf))
        axes.fill_between(x, low, y + spread, color=colour, alpha=0.18, linewidth=0)
