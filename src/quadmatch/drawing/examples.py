"""Several matched pairs on one sheet, and one pair matched in several ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quadmatch.datasets.photo_pairs import PicturePair
from quadmatch.drawing.canvas import make_figure
from quadmatch.drawing.match import draw_match
from quadmatch.drawing.matrices import plot_correspondence
from quadmatch.result import MatchResult, to_numpy

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


def draw_examples(pairs: Sequence[PicturePair], results: Sequence[MatchResult], columns: int = 2) -> Figure:
    """Each pair under its name: matched points in one colour with one number, yellow edges, wrong ones crosses."""
    rows = -(-len(pairs) // columns)
    figure = make_figure(5.6 * columns, 3.1 * rows)
    parts = figure.subfigures(rows, columns, squeeze=False).ravel()
    for part, pair, result in zip(parts, pairs, results):
        _draw(part, pair, result, "pair", pair.name.partition("/")[0])
    return figure


def draw_two_ways(pair: PicturePair, ways: Mapping[str, MatchResult]) -> Figure:
    """A row for each way to match the pair: the match, and beside it the matrix, predicted black and true red."""
    figure = make_figure(9.6, 3.4 * len(ways))
    parts = figure.subfigures(len(ways), 2, width_ratios=(2.4, 1), squeeze=False)
    for row, (way, result) in zip(parts, ways.items()):
        _draw(row[0], pair, result, "truth", way)
        plot_correspondence(row[1].add_subplot(), result, pair.truth)
    return figure


def _draw(part: SubFigure, pair: PicturePair, result: MatchResult, by: str, name: str) -> None:
    right = pair.count_right(to_numpy(result.pairs))
    draw_match(
        result,
        pair.points_a,
        pair.points_b,
        image_a=pair.picture_a,
        image_b=pair.picture_b,
        truth=pair.truth,
        labels=by == "pair",
        by="pair" if by == "pair" else "truth",
        title=f"{name}: {right} of {len(pair.truth)} right",
        figure=part,
    )
