"""A matching as a picture: two graphs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.drawing.canvas import finish
from quadmatch.drawing.labels import MOST_LABELLED, label_points
from quadmatch.drawing.layout import align, lay_out
from quadmatch.drawing.marks import colour_scores, colour_truth, draw_legend, draw_lines, draw_nodes
from quadmatch.drawing.panels import Points, lay_panels
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
    names_a: Sequence[object] | None = None,
    names_b: Sequence[object] | None = None,
    labels: bool = True,
    legend: bool = True,
    title: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Both graphs side by side with their match; with `truth` pairs are green or red, else coloured by score.

    Without points a graph is laid out from its edges; `source` and `target` are adjacency matrices (the
    result's own if it knows them), drawn unless `edges` is off; images are paths, PIL images or arrays that
    the points are pixels of; `truth` is a 0/1 matrix [N, M] or the target node of each source node (-1:
    none). Points are labelled by `names_a` and `names_b`, else by their numbers, unless `labels` is off or
    they are too many; a `legend` says what the colours mean. With `path` the figure is also written there.
    """
    source = _first(source, result.source)
    target = _first(target, result.target)
    pairs = to_numpy(result.pairs).reshape(-1, 2)
    n, m = result.assignment.shape
    left, right = _place(points_a, source, n, "points_a"), _place(points_b, target, m, "points_b")
    if points_b is None and points_a is None:
        right = align(right, left, pairs)
    names = _name(names_a, n, "names_a"), _name(names_b, m, "names_b")
    figure, axes, panels, unit = lay_panels((left, right), (image_a, image_b), (source, target) if edges else ())
    judged = None if truth is None else judge(pairs, truth)
    code = colour_scores(to_numpy(result.scores)) if judged is None else colour_truth(judged)
    draw_lines(axes, panels[0].points, panels[1].points, pairs, code)
    radius = 0.5 * float(np.sqrt(np.clip(1800 / max(n, m, 1), 8, 60)))
    for panel, nodes, own in zip(panels, pairs.T, names):
        draw_nodes(axes, panel.points, nodes, code, radius)
        if labels and len(own) <= MOST_LABELLED:
            label_points(axes, panel.points, own, radius, unit)
    if legend:
        draw_legend(axes, code, alone=n + m > 2 * len(pairs))
    axes.set_title(_caption(result, judged, image_a is not None) if title is None else title, fontsize=11)
    return finish(figure, path)


def judge(pairs: NDArray[np.int64], truth: Any) -> NDArray[np.bool_]:
    """Which of the pairs are true."""
    values = to_numpy(truth)
    if values.ndim == 2:
        return values[pairs[:, 0], pairs[:, 1]].astype(bool)
    return np.asarray(values[pairs[:, 0]] == pairs[:, 1])


def _first(given: Any, own: Any) -> NDArray[Any] | None:
    chosen = own if given is None else given
    return None if chosen is None else to_numpy(chosen)


def _name(names: Sequence[object] | None, count: int, name: str) -> list[str]:
    """What stands at the nodes: their names, or their numbers."""
    if names is None:
        return [str(number) for number in range(count)]
    if len(names) != count:
        raise ValueError(f"{name} must name {count} nodes, got {len(names)} names")
    return [str(one) for one in names]


def _place(points: Any, adjacency: NDArray[Any] | None, count: int, name: str) -> Points:
    """Where the nodes are drawn, y downwards as in pictures."""
    if points is None:
        return lay_out(np.zeros((count, count)) if adjacency is None else adjacency)
    placed = np.asarray(to_numpy(points), dtype=np.float64)
    if placed.shape != (count, 2) or not np.isfinite(placed).all():
        raise ValueError(f"{name} must be {count} finite (x, y), one for each node; got shape {list(placed.shape)}")
    return placed


def _caption(result: MatchResult, judged: NDArray[np.bool_] | None, pictures: bool) -> str:
    if pictures and (judged is None or not len(judged)):
        n, m = result.assignment.shape
        return f"{len(result.pairs)} pairs of {n} and {m} keypoints"
    if judged is None or not len(judged):
        return f"{len(result.pairs)} pairs, objective {to_float(result.objective):.4g}"
    return f"{int(judged.sum())} of {len(judged)} pairs right ({100 * judged.mean():.0f} %)"
