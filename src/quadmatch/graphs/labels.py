"""Names of nodes, where what a user hands over as a graph has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Labels = Mapping[tuple[str, int], list[Any]]
"""Names of the nodes of graph `a` or `b` of a pair, by side and place in the list."""


def collect_labels(sources: Sequence[Any], targets: Sequence[Any]) -> Labels:
    """The names of all graphs that have some."""
    return {
        (side, place): labels
        for side, graphs in (("a", sources), ("b", targets))
        for place, graph in enumerate(graphs)
        if type(graph) is not np.ndarray and (labels := _read_labels(graph, side)) is not None
    }


def _read_labels(graph: Any, side: str) -> list[Any] | None:
    """Nodes of a networkx graph, or the labels of a table of rows and columns, as pandas has them."""
    if hasattr(graph, "nodes") and hasattr(graph, "is_directed"):
        return list(graph.nodes)
    if not (hasattr(graph, "columns") and hasattr(graph, "index") and hasattr(graph, "to_numpy")):
        return None
    rows, columns = list(graph.index), list(graph.columns)
    if len(rows) == len(columns) and rows != columns:
        place = next(place for place, (row, column) in enumerate(zip(rows, columns)) if row != column)
        raise ValueError(
            f"{side} must have the same labels of rows and columns in the same order; "
            f"number {place} is {rows[place]!r} and {columns[place]!r}"
        )
    return rows
