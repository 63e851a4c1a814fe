"""Curves, matrices and tables show what they were given."""

import io

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from rich.console import Console

from quadmatch.drawing.canvas import WRONG
from quadmatch.drawing.curves import Curve, draw_curves, draw_grid
from quadmatch.drawing.matrices import draw_assignment, draw_correspondence
from quadmatch.drawing.tables import draw_table, write_markdown
from quadmatch.result import MatchResult

LABELS = {"x_label": "outliers", "y_label": "accuracy (%)"}


def make_result(n, m, pairs):
    assignment = np.zeros((n, m))
    assignment[tuple(np.array(pairs).T)] = 1
    return MatchResult(np.array(pairs), np.ones(len(pairs)), assignment, 0.0, 1, True)


def list_ticks(axis):
    """Where an axis shows numbers, as far as they are seen."""
    low, high = sorted(axis.get_view_interval())
    return [tick for tick in axis.get_majorticklocs() if low <= tick <= high]


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (3, 2), (4, 9), (60, 40)])
def test_nodes_are_counted_in_whole_numbers(n, m):
    result = make_result(n, m, [(0, 0)])
    for figure in (draw_assignment(result), draw_correspondence(result, np.zeros((n, m)))):
        figure.canvas.draw()
        for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
            ticks = list_ticks(axis)
            assert ticks
            assert all(float(tick).is_integer() for tick in ticks)


def test_a_correspondence_is_black_and_its_truth_red():
    axes = draw_correspondence(make_result(3, 4, [(0, 1), (2, 3)]), np.array([1, 0, -1])).axes[0]
    assert np.argwhere(axes.images[0].get_array()).tolist() == [[0, 1], [2, 3]]
    frames = [one for one in axes.patches if isinstance(one, Rectangle)]
    assert [(one.get_y() + 0.5, one.get_x() + 0.5) for one in frames] == [(0, 1), (1, 0)]
    assert {to_hex(one.get_edgecolor()) for one in frames} == {WRONG}
    with pytest.raises(ValueError, match="truth must have shape"):
        draw_correspondence(make_result(3, 4, [(0, 1)]), np.array([1, 0]))


def test_curves_have_lines_bands_and_a_legend(tmp_path):
    curves = {
        "with": Curve([0, 2, 4], [90.0, 80.0, 75.0], [1.0, 2.0, 3.0]),
        "without": Curve([0, 2, 4], [88.0, 70.0, np.inf]),
    }
    figure = draw_curves(curves, **LABELS, title="T", path=tmp_path / "curves.png")
    axes = figure.axes[0]
    assert [line.get_label() for line in axes.lines] == ["with", "without"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["with", "without"]
    assert axes.lines[0].get_ydata().tolist() == [90.0, 80.0, 75.0]
    assert np.isnan(axes.lines[1].get_ydata()[-1])
    (band,) = axes.collections
    points = band.get_paths()[0].vertices
    assert {tuple(point) for point in points} >= {(0, 89), (0, 91), (4, 72), (4, 78)}
    styles = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines}
    assert len(styles) == 2
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert all(float(tick).is_integer() for tick in list_ticks(axes.xaxis))


def test_losses_are_drawn_on_a_logarithmic_axis():
    steps = list(range(50))
    loss = Curve(steps, [10.0 ** (-step / 10) for step in steps], [1.0] * 50)
    dead = Curve(steps, [0.0] * 49 + [1.0])
    axes = draw_curves({"a": loss, "b": dead}, x_label="step", y_label="loss", logarithmic=True).axes[0]
    assert axes.get_yscale() == "log"
    assert axes.lines[0].get_marker() == ""
    assert np.isnan(axes.lines[1].get_ydata()).sum() == 49
    assert (axes.collections[0].get_paths()[0].vertices[:, 1] > 0).all()


def test_curves_of_nothing_and_of_unequal_lengths():
    assert draw_curves({}, **LABELS).axes
    assert draw_curves({"none": Curve([], [], [])}, **LABELS, logarithmic=True).axes
    with pytest.raises(ValueError, match=r"equally long, got \[2, 1\]"):
        Curve([0, 1], [1.0])


def test_tables_on_the_screen_and_as_markdown():
    lines = [["class", "a|b"], ["[x]", "1"], ["mean", "2"]]
    shown = io.StringIO()
    Console(file=shown, width=60).print(draw_table(lines, title="T", caption="c", totals=1))
    assert "[x]" in shown.getvalue()
    assert write_markdown(lines) == "| class | a\\|b |\n| :-- | --: |\n| [x] | 1 |\n| mean | 2 |"
    table = draw_table(lines, totals=1)
    assert [row.style for row in table.rows] == [None, "bold"]
    assert table.rows[0].end_section


def test_a_long_first_column_is_broken_not_cut():
    words = [f"word{number}" for number in range(20)]
    shown = io.StringIO()
    Console(file=shown, width=60).print(draw_table([["name", "ours", "peer"], [" ".join(words), "1.25", "3.5"]]))
    assert all(word in shown.getvalue() for word in [*words, "1.25", "3.5"])


def test_a_heat_map_counts_nodes_in_whole_numbers_or_names_them():
    soft = np.full((25, 50), 0.1)
    result = MatchResult(np.zeros((0, 2), int), np.zeros(0), soft, 0.0, 1, True)
    names = [f"ear {number}" for number in range(50)]
    figure = draw_assignment(result, names_b=names, truth=np.arange(25))
    figure.canvas.draw()
    axes = figure.axes[0]
    assert all(float(tick).is_integer() for tick in axes.get_yticks())
    assert [text.get_text() for text in axes.get_xticklabels()] == names[::2]
    assert len(axes.get_legend().get_texts()) == 2


def test_a_grid_has_a_plot_for_each_name_and_one_legend(tmp_path):
    one, two = Curve([0, 1], [1, 2]), Curve([0, 1], [3, 400])
    panels = {"first": {"a": one, "b": two}, "second": {"a": two}, "third": {"a": one}}
    figure = draw_grid(panels, x_label="step", logarithmic={"second"}, path=tmp_path / "grid.png")
    assert [axes.get_title() for axes in figure.axes] == list(panels)
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "log", "linear"]
    assert [len(axes.get_lines()) for axes in figure.axes] == [2, 1, 1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(panels["first"])
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "step", "step"]
    assert (tmp_path / "grid.png").stat().st_size > 1000
