"""The paper's figures by name; what makes each is imported when it is called: a list of names waits for nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from quadmatch.reproduce.items import Figure, Output, Settings


def _call(place: str) -> Callable[[Settings], Output]:
    """A maker by its module and name, as in `outliers.make_figure`."""
    module, name = place.split(".")
    return partial(_make, module, name)


def _make(module: str, name: str, settings: Settings) -> Output:
    made: Output = getattr(import_module(f"quadmatch.reproduce.{module}"), name)(settings)
    return made


DRAWN = {
    "loss-surface": Figure("two losses over all soft matches of a node (figure 5)", _call("loss_surface.make_figure")),
    "overview": Figure("the stages of a match, from a real pair's tensors (figure 2)", _call("inside.make_overview")),
    "edge-kernel": Figure("what the weight of an edge stands for (figure 3)", _call("inside.make_edge_kernel")),
    "loss-flow": Figure("how the false-matching loss is made (figure 4)", _call("inside.make_loss_flow")),
    "examples-photographs": Figure("matched photographs, as figure 7", _call("examples.show_photographs")),
    "two-ways-photographs": Figure(
        "photographs without and with the constraint, as figure 1", _call("examples.compare_photographs")
    ),
    "examples": Figure("matched pairs of both data sets (figure 7)", _call("examples.show_datasets")),
    "two-ways": Figure("a pair without and with the constraint (figure 1)", _call("examples.compare_datasets")),
}
"""Those that train nothing: seconds, or minutes where a data set is looked at."""

MEASURED = {
    "iterations": Figure(
        "Frank-Wolfe steps at inference, trained with the constraint and without",
        _call("iterations.make_figure"),
        rows=("DGM1", "PCA", "GMN"),
    ),
    "outliers": Figure(
        "accuracy against the number of outliers (figure 6)",
        _call("outliers.make_figure"),
        rows=("willow", "pascal-voc"),
    ),
    "beyond-outliers": Figure(
        "accuracy of the strongest models that ship against the number of outliers", _call("outliers.make_shipped")
    ),
}
"""Those that train networks first."""
