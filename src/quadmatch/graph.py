"""Graphs and pairs of graphs: the one data type that every part speaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

Kind = TypeVar("Kind", bound="Batch")


class Batch:
    """What every frozen dataclass of tensors here shares: moving between devices and number formats."""

    def to(self: Kind, *args: object, **kwargs: object) -> Kind:
        """As `torch.Tensor.to`, for each tensor; a change of number format leaves masks boolean."""
        changed: dict[str, object] = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, tuple):
                changed[field.name] = tuple(_to(item, *args, **kwargs) for item in value)
            else:
                changed[field.name] = _to(value, *args, **kwargs)
        return type(self)(**changed)


def _to(tensor: Tensor, *args: object, **kwargs: object) -> Tensor:
    if not tensor.is_floating_point():
        device = torch.empty(0).to(*args, **kwargs).device  # type: ignore[call-overload]
        return tensor.to(device)
    moved: Tensor = tensor.to(*args, **kwargs)  # type: ignore[call-overload]
    return moved


@dataclass(frozen=True)
class Graph(Batch):
    """A padded batch of graphs; `mask` says which nodes are real."""

    points: Float[Tensor, "B N 2"]
    """(x, y) in pixels; zeros where a graph has no positions."""
    mask: Bool[Tensor, "B N"]
    """True where the node is real."""
    adjacency: Float[Tensor, "B N N"]
    """0/1 from a construction, weights from a user; zero on padding."""

    @property
    def sizes(self) -> Tensor:
        """Number of real nodes of each graph, [B]."""
        return self.mask.sum(-1)


@dataclass(frozen=True)
class GraphPair(Batch):
    """A padded batch of pairs of graphs and what is known of their correspondence."""

    source: Graph
    target: Graph
    truth: Bool[Tensor, "B N M"]
    """All False where unknown."""

    @property
    def mask(self) -> Bool[Tensor, "B N M"]:
        """True where both nodes are real."""
        return self.source.mask[:, :, None] & self.target.mask[:, None, :]

    def to(self, *args: object, **kwargs: object) -> GraphPair:
        """As `torch.Tensor.to`, for both graphs and the truth."""
        source, target = self.source.to(*args, **kwargs), self.target.to(*args, **kwargs)
        return GraphPair(source, target, _to(self.truth, *args, **kwargs))


def _pad_graph(graph: Graph, nodes: int) -> Graph:
    extra = nodes - graph.mask.shape[1]
    return Graph(
        pad(graph.points, (0, 0, 0, extra)),
        pad(graph.mask, (0, extra)),
        pad(graph.adjacency, (0, extra, 0, extra)),
    )


def _cat_graphs(graphs: Sequence[Graph]) -> Graph:
    nodes = max(graph.mask.shape[1] for graph in graphs)
    padded = [_pad_graph(graph, nodes) for graph in graphs]
    return Graph(
        torch.cat([graph.points for graph in padded]),
        torch.cat([graph.mask for graph in padded]),
        torch.cat([graph.adjacency for graph in padded]),
    )


def collate(pairs: Sequence[GraphPair]) -> GraphPair:
    """One padded batch of all the pairs, in order."""
    if not pairs:
        raise ValueError("collate needs at least one pair, got an empty list")
    source, target = _cat_graphs([p.source for p in pairs]), _cat_graphs([p.target for p in pairs])
    rows, columns = source.mask.shape[1], target.mask.shape[1]
    truth = [pad(p.truth, (0, columns - p.truth.shape[2], 0, rows - p.truth.shape[1])) for p in pairs]
    return GraphPair(source, target, torch.cat(truth))
