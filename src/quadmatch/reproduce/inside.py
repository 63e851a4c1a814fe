"""Figures 2 to 4, drawn from the tensors of one pair of photographs: the whole way, an edge, the loss."""

from __future__ import annotations

import numpy as np
import torch

from quadmatch.drawing.edge_kernel import draw_edge_kernel
from quadmatch.drawing.stages import draw_loss_flow, draw_stages
from quadmatch.layers.structure import normalise_rows, weigh_adjacency
from quadmatch.reproduce.anatomy import ALPHA, BETA, KERNEL, Anatomy, look_inside
from quadmatch.reproduce.items import Output, Settings


def make_overview(settings: Settings) -> Output:
    """From two photographs to a permutation."""
    seen = look_inside(settings)
    matches = {
        "scores K$_p$": seen.scores,
        "soft match": seen.assignment,
        "constrained": seen.constrained,
        "permutation": seen.permutation,
    }
    figure = draw_stages(
        (seen.pair.picture_a, seen.pair.picture_b),
        (seen.pair.points_a, seen.pair.points_b),
        seen.edges,
        seen.attributes,
        seen.structures,
        matches,
        seen.truth,
    )
    lines = [["stage", "mean of true entries", "right after Hungarian"]]
    for name, values in matches.items():
        mean = float((values * seen.truth).sum() / seen.truth.sum())
        lines.append([name.replace("$_p$", "ₚ"), f"{mean:.3f}", f"{_count_right(values, seen)} of {len(seen.truth)}"])
    record = seen.describe() | {"lines": lines}
    return Output("From two photographs to a match (figure 2)", _describe(seen), lines, record, figure)


def _count_right(values: np.ndarray, seen: Anatomy) -> int:
    """True matches in the best permutation of a matrix."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-values)
    return int(seen.truth[rows, columns].sum())


def make_edge_kernel(settings: Settings) -> Output:
    """The weight of an edge as the angle between its ends."""
    seen = look_inside(settings)
    rows, edges = (torch.from_numpy(values)[None] for values in (seen.attributes[0], seen.edges[0]))
    cosines, weights = (weigh_adjacency(rows, edges, kernel)[0].numpy() for kernel in ("cosine", KERNEL))
    figure = draw_edge_kernel(
        seen.pair.picture_a,
        seen.pair.points_a,
        seen.edges[0],
        normalise_rows(rows)[0].numpy(),
        cosines,
        "f = exp(cos θ)",
        weights,
    )
    found = cosines[np.triu(seen.edges[0], 1) > 0]
    lines = [["edges", "least cos θ", "mean", "most"]]
    lines.append([str(len(found)), *(f"{value:.3f}" for value in (found.min(), found.mean(), found.max()))])
    record = seen.describe() | {"cosines": found.round(4).tolist()}
    caption = f"{_describe(seen)} Attributes before the first layer; of each node the first few are shown."
    return Output("The weight of an edge (figure 3)", caption, lines, record, figure)


def make_loss_flow(settings: Settings) -> Output:
    """From a soft match and the truth to the false-matching loss."""
    seen = look_inside(settings)
    wrong, missing = seen.false_positive, seen.false_negative
    possible = len(seen.truth)
    parts = [float(np.exp(weight * one.sum() / possible)) for weight, one in ((ALPHA, wrong), (BETA, missing))]
    figure = draw_loss_flow(seen.constrained, seen.truth, wrong, missing, ALPHA, BETA, sum(parts))
    lines = [["part", "mass", "of the possible matches", "loss"]]
    for name, one, part in (("wrong", wrong, parts[0]), ("missing", missing, parts[1])):
        lines.append([name, f"{one.sum():.3f}", f"{one.sum() / possible:.3f}", f"{part:.3f}"])
    record = seen.describe() | {"wrong": float(wrong.sum()), "missing": float(missing.sum()), "loss": sum(parts)}
    return Output("How the false-matching loss is made (figure 4)", _describe(seen), lines, record, figure)


def _describe(seen: Anatomy) -> str:
    known = seen.describe()
    return f"{known['model']}, two warped views of scikit-image's {known['photograph']}, {known['keypoints']} corners."
