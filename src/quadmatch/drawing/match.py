"""A matching as a picture: two graphs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from quadmatch.drawing.canvas import finish, make_figure
from quadmatch.drawing.labels import MOST_LABELLED, label_points
from quadmatch.drawing.layout import align, lay_out
from quadmatch.drawing.marks import Code, colour_pairs, colour_scores, colour_truth, draw_legend, draw_lines, draw_nodes
from quadmatch.drawing.panels import WIDTH, Points, draw_edges, lay_panels
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
    by: Literal["truth", "score", "pair"] | None = None,
    figure: Any = None,
    path: str | Path | None = None,
) -> Figure:
    """Both graphs side by side with their match; with `truth` pairs are green or red, else coloured by score.

    Without points a graph is laid out from its edges; `source` and `target` are adjacency matrices (the
    result's own if it knows them), drawn unless `edges` is off; images are paths, PIL images or arrays that
    the points are pixels of; `truth` is a 0/1 matrix [N, M] or the target node of each source node (-1:
    none). Points are labelled by `names_a` and `names_b`, else by their numbers, unless `labels` is off or
    they are too many; a `legend` says what the colours mean. `by` says what colours stand for: with "pair" each
    pair has one of its own and its number, without lines. What is known to be wrong differs in shape too. A
    `figure`, or a part of one, is drawn on if given. With `path` it is also written there.
    """
    source = _first(source, result.source)
    target = _first(target, result.target)
    pairs = to_numpy(result.pairs).reshape(-1, 2)
    n, m = result.assignment.shape
    left, right = _place(points_a, source, n, "points_a"), _place(points_b, target, m, "points_b")
    if points_b is None and points_a is None:
        right = align(right, left, pairs)
    judged = None if truth is None else judge(pairs, truth)
    code = _choose_code(by, judged, to_numpy(result.scores))
    numbers = _number(pairs, n, m) if by == "pair" else (None, None)
    names = _name(names_a or numbers[0], n, "names_a"), _name(names_b or numbers[1], m, "names_b")
    sheet = lay_panels((left, right), (image_a, image_b))
    drawn = make_figure(WIDTH, 0.8 + WIDTH * sheet.height / sheet.width) if figure is None else figure
    axes = drawn.add_subplot()
    sheet.place_on(axes)
    radius = 0.5 * float(np.sqrt(np.clip(1800 / max(n, m, 1), 8, 60)))
    unit = sheet.find_unit(drawn.bbox.width / drawn.dpi)
    for panel, adjacency in zip(sheet.panels, (source, target) if edges else ()):
        draw_edges(axes, panel, adjacency, code.on_picture)
    if code.lines:
        draw_lines(axes, sheet.panels[0].points, sheet.panels[1].points, pairs, code)
    for panel, nodes, own in zip(sheet.panels, pairs.T, names):
        draw_nodes(axes, panel.points, nodes, code, radius)
        if labels and len(own) <= MOST_LABELLED:
            label_points(axes, panel.points, own, radius, unit)
    if legend:
        draw_legend(axes, code, alone=n + m > 2 * len(pairs))
    axes.set_title(_caption(result, judged, image_a is not None) if title is None else title, fontsize=11)
    return finish(drawn, path)


def _choose_code(by: str | None, judged: NDArray[np.bool_] | None, scores: NDArray[Any]) -> Code:
    """The colour code that was asked for; without a wish, truth where it is known and scores elsewhere."""
    chosen = by or ("score" if judged is None else "truth")
    if chosen == "pair":
        return colour_pairs(np.ones(len(scores), dtype=np.bool_) if judged is None else judged)
    if chosen == "truth" and judged is not None:
        return colour_truth(judged)
    if chosen == "score":
        return colour_scores(scores)
    raise ValueError(f"by must be 'score', 'pair' or, with a truth, 'truth'; got {by!r}")


def _number(pairs: NDArray[np.int64], n: int, m: int) -> tuple[list[str], list[str]]:
    """The number of its pair for each node on both sides; nothing for those left alone."""
    sides = [""] * n, [""] * m
    for number, pair in enumerate(pairs, 1):
        for side, node in zip(sides, pair):
            side[node] = str(number)
    return sides


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
