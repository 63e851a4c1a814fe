"""Matrices between the nodes of two graphs: a soft assignment as a heat map, a correspondence beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.drawing.canvas import RIGHT, WRONG, count_whole, finish, make_canvas
from quadmatch.result import MatchResult, to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

MOST_NAMED = 40
"""Names along an axis; of more, every second or third is shown."""


def draw_assignment(
    result: MatchResult,
    *,
    truth: Any = None,
    names_a: Sequence[object] | None = None,
    names_b: Sequence[object] | None = None,
    title: str = "assignment",
    path: str | Path | None = None,
) -> Figure:
    """The assignment matrix as a heat map; `truth` frames the true matches, names label rows and columns."""
    values = to_numpy(result.assignment)
    n, m = values.shape
    figure, axes = _lay_out(n, m, title)
    shown = axes.imshow(values if values.size else np.zeros((1, 1)), cmap="Blues", vmin=0, vmax=1, aspect="equal")
    if truth is not None:
        _frame_truth(axes, values, read_truth(truth, n, m))
    figure.colorbar(shown, ax=axes, fraction=0.046, pad=0.03)
    for axis, names, turn in ((axes.xaxis, names_b, 90), (axes.yaxis, names_a, 0)):
        if names is not None:
            _name_nodes(axis, names, turn)
    return finish(figure, path)


def _frame_truth(axes: Axes, values: NDArray[Any], true: NDArray[np.bool_]) -> None:
    """A frame around each true match, green where it is the largest of its row."""
    best = true & (values > 0) & (values >= values.max(1, keepdims=True, initial=0))
    size = min(14.0, 160 / max(*values.shape, 1))
    for colour, word, chosen in ((RIGHT, "true and largest in its row", best), (WRONG, "true and not", true & ~best)):
        rows, columns = np.nonzero(chosen)
        axes.plot(columns, rows, "s", fillstyle="none", color=colour, markersize=size, label=word)
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": 2}
    axes.legend(**below, frameon=False, fontsize=9, markerscale=min(1.0, 8 / size))


def _name_nodes(axis: Axis, names: Sequence[object], turn: int) -> None:
    """Names at an axis, turned by some degrees, not more of them than can be read."""
    step = -(-len(names) // MOST_NAMED) or 1
    axis.set_ticks(range(0, len(names), step), [str(name) for name in names[::step]], fontsize=7, rotation=turn)


def draw_correspondence(
    result: MatchResult, truth: Any, *, title: str = "correspondence", path: str | Path | None = None
) -> Figure:
    """The matched pairs as black cells and the true ones as red frames: a black cell in red is right."""
    rows, columns = result.assignment.shape
    figure, axes = _lay_out(rows, columns, title)
    plot_correspondence(axes, result, truth)
    return finish(figure, path)


def plot_correspondence(axes: Axes, result: MatchResult, truth: Any) -> None:
    """The same on axes that are there already."""
    from matplotlib.patches import Rectangle

    n, m = result.assignment.shape
    pairs = to_numpy(result.pairs).reshape(-1, 2)
    _name_axes(axes)
    predicted = np.zeros((max(n, 1), max(m, 1)))
    predicted[pairs[:, 0], pairs[:, 1]] = 1
    axes.imshow(predicted, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    width = float(np.clip(40 / max(n, m, 1), 0.6, 2.0))
    for i, j in np.argwhere(read_truth(truth, n, m)):
        axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=WRONG, linewidth=width))


def _lay_out(n: int, m: int, title: str) -> tuple[Figure, Axes]:
    """Axes of source and target nodes, with equal cells."""
    longest = max(n, m, 1)
    figure, axes = make_canvas(1.6 + 4.4 * m / longest, 1.2 + 4.4 * n / longest)
    _name_axes(axes)
    axes.set_title(title, fontsize=11)
    return figure, axes


def _name_axes(axes: Axes) -> None:
    axes.set_xlabel("target node")
    axes.set_ylabel("source node")
    count_whole(axes.xaxis)
    count_whole(axes.yaxis)


def read_truth(truth: Any, n: int, m: int) -> NDArray[np.bool_]:
    """Truth as a boolean matrix, from a 0/1 matrix or the target node of each source node (-1: none)."""
    values = to_numpy(truth)
    if values.shape == (n, m) and values.ndim == 2:
        return values.astype(bool)
    if values.shape == (n,):
        if len(values) and (values.min() < -1 or values.max() >= m):
            raise ValueError(f"truth must name target nodes from 0 to {m - 1}, or -1 for none")
        return np.asarray(values[:, None] == np.arange(m)[None, :])
    raise ValueError(f"truth must have shape [{n}, {m}] or [{n}], got {list(values.shape)}")
