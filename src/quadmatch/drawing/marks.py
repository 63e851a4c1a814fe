"""Lines and points of a match in one colour code, and the legend that explains it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.drawing.canvas import DARK, RIGHT, WRONG, make_rim

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = NDArray[np.float64]

LIGHT, YELLOW = "#f4f6f8", "#ffd43b"
"""Edges on a picture, where grey would not be seen: yellow, unless colours say scores, of which some are yellow."""
CIRCLE, CROSS = "o", "X"
"""Points of pairs, and of pairs that are known to be wrong."""


@dataclass(frozen=True, eq=False)
class Code:
    """What the colour of a pair says, of its line and of its two points: the only colour code of a picture."""

    colours: NDArray[np.float64]
    """Of each pair."""
    order: NDArray[np.int64]
    """Pairs in the order in which they are drawn: what should be seen comes last."""
    words: dict[str, str]
    """Colours by what they say; none where a scale says it."""
    wrong: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """Pairs that are known to be wrong: told apart by shape too, for those who do not see it by colour."""
    lines: bool = True
    """Whether lines join the two points of a pair."""
    on_picture: str = LIGHT
    """Colour of a graph's edges on a picture."""

    def mark(self) -> NDArray[np.bool_]:
        """Which pairs get the shape of wrong ones."""
        return self.wrong if len(self.wrong) else np.zeros(len(self.colours), dtype=np.bool_)


def colour_truth(judged: NDArray[np.bool_]) -> Code:
    """Right pairs and wrong ones: those are few where it matters, and lie on top."""
    from matplotlib.colors import to_rgba_array

    colours = to_rgba_array([RIGHT if right else WRONG for right in judged]).reshape(-1, 4)
    order, words = np.argsort(~judged, kind="stable"), {"right": RIGHT, "wrong": WRONG}
    return Code(colours, order, words, wrong=~judged, on_picture=YELLOW)


def colour_pairs(judged: NDArray[np.bool_]) -> Code:
    """Each pair in a colour of its own, without lines, as papers show matched objects; wrong ones on top."""
    from matplotlib import colormaps

    shades = colormaps["tab20"]([*range(0, 20, 2), *range(1, 20, 2)])[:, :3]
    colours = np.column_stack([shades[np.arange(len(judged)) % len(shades)], np.ones(len(judged))])
    words = {"right": "#adb5bd"} | ({} if judged.all() else {"wrong": "#adb5bd"})
    return Code(colours, np.argsort(~judged, kind="stable"), words, wrong=~judged, lines=False, on_picture=YELLOW)


def colour_scores(scores: NDArray[Any]) -> Code:
    """Pairs by their scores, the doubtful on top."""
    values = np.asarray(scores, dtype=np.float64)
    return Code(make_scale()(values).reshape(-1, 4), np.argsort(-values, kind="stable"), {})


def make_scale() -> Any:
    """Colours of scores from 0 to 1, all of which are seen on white paper."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.86, 256)), "scores")


def draw_lines(axes: Axes, left: Points, right: Points, pairs: NDArray[np.int64], code: Code) -> None:
    """A line from each point to its partner."""
    from matplotlib.collections import LineCollection

    segments = np.stack((left[pairs[:, 0]], right[pairs[:, 1]]), 1)[code.order]
    width = float(np.clip(28 / max(len(pairs), 1), 0.6, 1.4))
    dashes = [(0, (3.0, 1.6)) if wrong else "solid" for wrong in code.mark()[code.order]]
    colours = code.colours[code.order]
    lines = LineCollection(list(segments), linewidths=width, colors=colours, linestyles=dashes or "solid", zorder=2)
    lines.set_path_effects(make_rim("white", width + 1.2, 0.55))
    axes.add_collection(lines)


def draw_nodes(axes: Axes, points: Points, nodes: NDArray[np.int64], code: Code, radius: float) -> None:
    """All points: the `nodes` of the pairs in their colours, those left alone hollow."""
    alone = np.delete(points, nodes, axis=0)
    order, wrong = code.order, code.mark()[code.order]
    placed, colours = points[nodes][order], code.colours[order]
    groups = (
        (alone, "white", CIRCLE),
        (placed[~wrong], colours[~wrong], CIRCLE),
        (placed[wrong], colours[wrong], CROSS),
    )
    for places, paint, shape in groups:
        if len(places):
            # The rim is seen on a light picture, what it encloses on a dark one.
            size = (2 * radius * (1.25 if shape == CROSS else 1)) ** 2
            x, y = places.T
            axes.scatter(x, y, s=size, c=paint, marker=shape, edgecolors=DARK, linewidths=0.7, zorder=4)


def draw_legend(axes: Axes, code: Code, alone: bool) -> None:
    """What the colours say, and hollow points if there are any."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "", "markeredgecolor": DARK, "markeredgewidth": 0.7}
    words = code.words | ({"left alone": "white"} if alone else {})
    shapes = {"wrong": CROSS}
    handles = [
        Line2D([], [], color=colour, label=word, marker=shapes.get(word, CIRCLE), **dot)
        for word, colour in words.items()
    ]
    if handles:
        axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False, fontsize=9)
    if not code.words and len(code.colours):
        scale = ScalarMappable(Normalize(0, 1), make_scale())
        axes.figure.colorbar(scale, ax=axes, fraction=0.025, pad=0.01, label="score")
