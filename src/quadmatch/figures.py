"""A matching as a picture: two graphs side by side, or the assignment as a heat map."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.drawing import (
    CLOSE,
    GAP,
    RIGHT,
    WRONG,
    Points,
    draw_edges,
    draw_lines,
    draw_nodes,
    fit_panel,
    make_canvas,
    show_picture,
)
from quadmatch.files import write_file
from quadmatch.layout import align, lay_out
from quadmatch.result import MatchResult, to_float, to_numpy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_match(
    result: MatchResult,
    points_a: Any = None,
    points_b: Any = None,
    *,
    image_a: Any = None,
    image_b: Any = None,
    source: Any = None,
    target: Any = None,
    truth: Any = None,
    edges: bool = True,
    title: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Both graphs side by side with their match; with `truth` lines are green or red, else coloured by score.

    Without points a graph is laid out from its edges; `source` and `target` are adjacency matrices (the
    result's own if it knows them), drawn unless `edges` is off; images are paths, PIL images or arrays that
    the points are pixels of; `truth` is a 0/1 matrix [N, M] or the target node of each source node (-1:
    none). With `path` the figure is also written there.
    """
    source = _first(source, result.source)
    target = _first(target, result.target)
    pairs, scores = to_numpy(result.pairs), to_numpy(result.scores)
    n, m = result.assignment.shape
    left, right = _place(points_a, source, n, "points_a"), _place(points_b, target, m, "points_b")
    if points_b is None and points_a is None:
        right = align(right, left, pairs)
    a, b = fit_panel(left, image_a, "image_a"), fit_panel(right, image_b, "image_b")
    height = max(a.height, b.height)
    start = a.width + (GAP if image_a is None or image_b is None else CLOSE)
    figure, axes = make_canvas(height, start + b.width)
    panels = []
    for panel, place in ((a, 0.0), (b, start)):
        down = (height - panel.height) / 2 if panel.picture is not None else 0.0
        show_picture(axes, panel, place, down)
        panels.append(panel.shift(place, down))
    if edges:
        draw_edges(axes, panels[0], source)
        draw_edges(axes, panels[1], target)
    right_or_wrong = None if truth is None else judge(pairs, truth)
    draw_lines(axes, panels[0].points, panels[1].points, pairs, scores, right_or_wrong)
    draw_nodes(axes, panels[0].points, panels[1].points, pairs)
    if title is None:
        title = _caption(result, right_or_wrong, image_a is not None)
    axes.set_title(title, fontsize=11)
    if path is not None:
        save_figure(figure, path)
    return figure


def draw_assignment(
    result: MatchResult, *, truth: Any = None, title: str | None = None, path: str | Path | None = None
) -> Figure:
    """The assignment matrix as a heat map; with `truth` the true matches are framed."""
    values = to_numpy(result.assignment)
    n, m = values.shape
    longest = max(n, m, 1)
    figure, axes = make_canvas(1.0, size=(1.6 + 4.4 * m / longest, 1.2 + 4.4 * n / longest))
    axes.axis("on")
    shown = axes.imshow(
        values if values.size else np.zeros((1, 1)), cmap="Blues", vmin=0, vmax=1, aspect="equal"
    )
    if truth is not None:
        for i, j in zip(*np.nonzero(read_truth(truth, n, m))):
            colour = RIGHT if values[i, j] > 0 and values[i, j] >= values[i].max() else WRONG
            axes.plot([j], [i], "s", fillstyle="none", color=colour, markersize=min(14.0, 160 / longest))
    axes.set_xlabel("target node")
    axes.set_ylabel("source node")
    axes.set_title("assignment" if title is None else title, fontsize=11)
    figure.colorbar(shown, ax=axes, fraction=0.046, pad=0.03)
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


def judge(pairs: NDArray[np.int64], truth: Any) -> NDArray[np.bool_]:
    """Which of the pairs are true."""
    values = to_numpy(truth)
    if values.ndim == 2:
        return values[pairs[:, 0], pairs[:, 1]].astype(bool)
    return np.asarray(values[pairs[:, 0]] == pairs[:, 1])


def _first(given: Any, own: Any) -> NDArray[Any] | None:
    chosen = own if given is None else given
    return None if chosen is None else to_numpy(chosen)


def _place(points: Any, adjacency: NDArray[Any] | None, count: int, name: str) -> Points:
    """Where the nodes are drawn, y downwards as in pictures."""
    if points is None:
        return lay_out(np.zeros((count, count)) if adjacency is None else adjacency)
    placed = np.asarray(to_numpy(points), dtype=np.float64)
    if placed.shape != (count, 2) or not np.isfinite(placed).all():
        raise ValueError(
            f"{name} must be {count} finite (x, y), one for each node; got shape {list(placed.shape)}"
        )
    return placed


def _caption(result: MatchResult, judged: NDArray[np.bool_] | None, pictures: bool) -> str:
    if pictures and (judged is None or not len(judged)):
        n, m = result.assignment.shape
        return f"{len(result.pairs)} pairs of {n} and {m} keypoints"
    if judged is None or not len(judged):
        return f"{len(result.pairs)} pairs, objective {to_float(result.objective):.4g}"
    return f"{int(judged.sum())} of {len(judged)} pairs right ({100 * judged.mean():.0f} %)"
