"""A pair of photographs on its way through the network: pictures of its stages, of an edge and of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quadmatch.drawing.canvas import make_figure
from quadmatch.drawing.heat_maps import frame_cells, show_graph, show_matrix, show_rows, show_sign

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

MOST_CHANNELS = 64
"""Attributes of a node that are shown."""


def draw_stages(
    pictures: Sequence[Any],
    points: Sequence[Array],
    edges: Sequence[Array],
    attributes: Sequence[Array],
    structures: Sequence[Array],
    matches: dict[str, Array],
    truth: Array,
) -> Figure:
    """Both graphs, their attributes and weighted edges in two rows, then the stages of the match, truth framed red."""
    figure = make_figure(12.5, 3.9)
    widths = (1.25, 0.28, 1.2, 0.28, 1.0, *(0.28, 1.25) * len(matches))
    grid = figure.add_gridspec(2, len(widths), width_ratios=widths)
    largest = max(float(one.max()) for one in structures)
    for row, letter in enumerate("AB"):
        show_graph(figure.add_subplot(grid[row, 0]), pictures[row], points[row], edges[row], f"graph {letter}")
        show_sign(figure.add_subplot(grid[row, 1]), "→", "VGG16")
        shown = attributes[row][:, :MOST_CHANNELS]
        show_rows(figure.add_subplot(grid[row, 2]), shown, f"attributes P of {letter}")
        show_sign(figure.add_subplot(grid[row, 3]), "→", "GCN")
        name = f"weighted edges {letter}$_D$"
        show_matrix(figure.add_subplot(grid[row, 4]), structures[row], name, most=largest)
    signs = ("affinity", "Sinkhorn", "constraint", "discrete\nsteps")
    for number, (name, values) in enumerate(matches.items()):
        show_sign(figure.add_subplot(grid[:, 5 + 2 * number]), "→", signs[number])
        soft = number > 0
        axes = figure.add_subplot(grid[:, 6 + 2 * number])
        show_matrix(axes, values, name, most=1.0 if soft else None, least=0.0 if soft else float(values.min()))
        frame_cells(axes, truth)
    return figure


def draw_loss_flow(
    match: Array, truth: Array, wrong: Array, missing: Array, alpha: float, beta: float, total: float
) -> Figure:
    """A soft match and the truth, the mass on wrong matches and the mass missing from true ones, and their loss."""
    figure = make_figure(9.2, 4.9)
    grid = figure.add_gridspec(2, 5, width_ratios=(1, 0.3, 1, 0.7, 0.8))
    possible = min(truth.shape)
    show_matrix(figure.add_subplot(grid[0, 0]), match, "soft match X")
    show_matrix(figure.add_subplot(grid[1, 0]), truth, "truth X*")
    terms = (
        (wrong, "wrong matches: X ∘ (1 − X*)", alpha, "α", "L₊"),
        (missing, "missing matches: X* ∘ (1 − X)", beta, "β", "L₋"),
    )
    for row, (values, title, weight, letter, name) in enumerate(terms):
        show_sign(figure.add_subplot(grid[row, 1]), "→")
        axes = figure.add_subplot(grid[row, 2])
        show_matrix(axes, values, title)
        share = float(values.sum()) / possible
        text = figure.add_subplot(grid[row, 3])
        show_sign(text, "→", f"sum {values.sum():.2f}, of {possible}: {share:.3f}")
        value = figure.add_subplot(grid[row, 4])
        show_sign(
            value, f"{name} = {np.exp(weight * share):.3f}", f"exp({letter} · {share:.3f}), {letter} = {weight:g}"
        )
    figure.suptitle(f"false-matching loss L = L₊ + L₋ = {total:.3f}", fontsize=11)
    return figure
