"""Graphs and pairs of graphs: the one data type that every part speaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

Kind = TypeVar("Kind", bound="Batch")
Made = TypeVar("Made")


class Batch:
    """What every frozen dataclass of tensors here shares: a change of each tensor, as a move to a device."""

    def to(self: Kind, *args: Any, **kwargs: Any) -> Kind:
        """As `torch.Tensor.to`, for each tensor in it; a change of number format leaves masks and indices alone."""

        def move(one: Tensor) -> Tensor:
            if one.is_floating_point():
                return one.to(*args, **kwargs)
            return one.to(torch.empty(0).to(*args, **kwargs).device)

        return self.map(move)

    def map(self: Kind, change: Callable[[Tensor], Tensor]) -> Kind:
        """The same with every tensor in it changed, in a fixed order."""
        changed = {one.name: _map(getattr(self, one.name), change) for one in fields(self)}  # type: ignore[arg-type]
        return type(self)(**changed)

    def repeat(self: Kind, rows: Any, count: int = 1) -> Kind:
        """So many copies of some rows of the batch, one after the other."""
        return self.map(lambda one: torch.cat([one[rows]] * count))


def _map(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(_map(one, change) for one in value)
    if isinstance(value, dict):
        return {name: _map(one, change) for name, one in value.items()}
    return change(value) if isinstance(value, Tensor) else value.map(change)


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

    def once(self, make: Callable[..., Made], *options: int | float) -> Made:
        """`make(graph, *options)`, made when it is first asked for: layers share what depends on the graph alone."""
        made, key = self.__dict__.setdefault("made", {}), (make, *options)
        if key not in made:
            made[key] = make(self, *options)
        return cast(Made, made[key])

    def pad(self, nodes: int) -> Graph:
        """The same graphs with room for so many nodes."""
        extra = nodes - self.mask.shape[1]
        points, adjacency = pad(self.points, (0, 0, 0, extra)), pad(self.adjacency, (0, extra, 0, extra))
        return Graph(points, pad(self.mask, (0, extra)), adjacency)

    @staticmethod
    def cat(graphs: Sequence[Graph]) -> Graph:
        """One batch of all of them, padded to the largest."""
        nodes = max(graph.mask.shape[1] for graph in graphs)
        padded = [graph.pad(nodes) for graph in graphs]
        points, adjacency = (torch.cat([getattr(one, name) for one in padded]) for name in ("points", "adjacency"))
        return Graph(points, torch.cat([one.mask for one in padded]), adjacency)


@dataclass(frozen=True)
class GraphPair(Batch):
    """A padded batch of pairs of graphs and what is known of their correspondence."""

    source: Graph
    target: Graph
    truth: Bool[Tensor, "B N M"]
    """All False where unknown."""
    names: tuple[Int[Tensor, "B N"], Int[Tensor, "B M"]] | None = None
    """In training, a number for what each node is, the same in all pairs of a batch; negative for what has no name."""

    @property
    def mask(self) -> Bool[Tensor, "B N M"]:
        """True where both nodes are real."""
        return self.source.mask[:, :, None] & self.target.mask[:, None, :]


@dataclass(frozen=True)
class PairBatch(Batch):
    """Pairs of graphs, and where the features of their nodes are: `Features.select` takes the indices."""

    pairs: GraphPair
    source: Int[Tensor, " P"]
    """The object of each pair, by its row in a table or in features."""
    target: Int[Tensor, " P"]
    source_nodes: Int[Tensor, "P N"]
    """The keypoint of that object at each node, -1 on padding."""
    target_nodes: Int[Tensor, "P M"]


def collate(pairs: Sequence[GraphPair]) -> GraphPair:
    """One padded batch of all the pairs, in order."""
    if not pairs:
        raise ValueError("collate needs at least one pair, got an empty list")
    source, target = Graph.cat([p.source for p in pairs]), Graph.cat([p.target for p in pairs])
    rows, columns = source.mask.shape[1], target.mask.shape[1]
    truth = [pad(p.truth, (0, columns - p.truth.shape[2], 0, rows - p.truth.shape[1])) for p in pairs]
    return GraphPair(source, target, torch.cat(truth))
