"""What flows through a method: features in, a soft matching out, a hard solution of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from quadmatch.graph import Batch, GraphPair

LOCAL, EDGE = "relu4_2", "relu5_1"
"""The layers whose read-outs the papers use, for a node and for the edges at it."""


@dataclass(frozen=True)
class Features(Batch):
    """What the image says about each node of a padded batch of graphs; zero on padding."""

    maps: dict[str, Float[Tensor, "B N _"]]
    """Read-outs at the nodes, by the name of the layer that they come from."""
    whole: Float[Tensor, "B C"]
    """Of the object."""

    @property
    def local(self) -> Float[Tensor, "B N C"]:
        """relu4_2 at the node."""
        return self.maps[LOCAL]

    @property
    def edge(self) -> Float[Tensor, "B N C"]:
        """relu5_1 at the node."""
        return self.maps[EDGE]

    @property
    def nodes(self) -> int:
        """Nodes that there is room for."""
        return next(iter(self.maps.values())).shape[1]

    def join(self) -> Float[Tensor, "B N C"]:
        """All read-outs of a node one after the other."""
        return torch.cat(list(self.maps.values()), -1)

    def select(self, objects: Int[Tensor, " P"], nodes: Int[Tensor, "P K"]) -> Features:
        """Rows `objects`, of each the nodes `nodes`; a negative node index gives a row of zeros."""
        absent = (nodes < 0).flatten().nonzero()[:, 0]
        places = (objects[:, None] * self.nodes + nodes.clamp(min=0)).flatten()

        def gather(values: Tensor) -> Tensor:
            picked = values.flatten(0, 1).index_select(0, places).index_fill_(0, absent, 0)
            return picked.view(*nodes.shape, values.shape[-1])

        return Features({name: gather(rows) for name, rows in self.maps.items()}, self.whole[objects])

    def pad(self, nodes: int) -> Features:
        """The same features with room for so many nodes."""
        padded = {name: pad(rows, (0, 0, 0, nodes - rows.shape[1])) for name, rows in self.maps.items()}
        return replace(self, maps=padded)

    @staticmethod
    def cat(parts: Sequence[Features], nodes: int = 0) -> Features:
        """One batch of all of them, padded to the largest and to `nodes` at least."""
        nodes = max(nodes, *(part.nodes for part in parts))
        padded = [part.pad(nodes) for part in parts]
        maps = {name: torch.cat([part.maps[name] for part in padded]) for name in parts[0].maps}
        return Features(maps, torch.cat([part.whole for part in parts]))


@dataclass(frozen=True)
class Stage(Batch):
    """What one layer of a head says: how alike the nodes are, and the assignment that follows from it."""

    unary: Float[Tensor, "B N M"]
    assignment: Float[Tensor, "B N M"]


@dataclass(frozen=True)
class Matching(Batch):
    """What a head says about a padded batch of pairs."""

    unary: Float[Tensor, "B N M"]
    """Node affinity; larger is more alike."""
    assignment: Float[Tensor, "B N M"]
    """Soft: rows and columns sum to at most one, zero on padding."""
    structure_source: Float[Tensor, "B N N"]
    """The weighted adjacency that the quadratic term compares."""
    structure_target: Float[Tensor, "B M M"]
    earlier: tuple[Stage, ...] = ()
    """What the layers before the last said."""
    unconstrained: Float[Tensor, "B N M"] | None = None
    """The assignment before the quadratic constraint; None where there was no constraint."""
    matchable: tuple[Float[Tensor, "B N"], Float[Tensor, "B M"]] | None = None
    """Logits of each node that it has a partner at all, where a head says so."""
    mutual: Float[Tensor, "B N M"] | None = None
    """How probable it is that two nodes pick each other, where a head is trained for it; zero on padding."""
    forced: Float[Tensor, "B N M"] | None = None
    """The assignment for matches that leave no node alone, where a head has another one for them."""
    alone: tuple[Float[Tensor, "B N C"], Float[Tensor, "B M C"]] | None = None
    """In training, the nodes before they know of the other graph, so that those of all pairs can be compared: scores
    are products of two rows. None where a head has no such layer."""
    common: Float[Tensor, " B"] | None = None
    """How probable it is that the two graphs have anything in common, where a head says so of the whole pair."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What every layer said, the last one before any constraint: the same number with a constraint and without."""
        return (*self.earlier, Stage(self.unary, self.release().assignment))

    def release(self) -> Matching:
        """The matching before the quadratic constraint; itself where there was none."""
        if self.unconstrained is None:
            return self
        return replace(self, assignment=self.unconstrained, unconstrained=None, forced=None)

    def settle(self, *, partial: bool) -> Matching:
        """The matching as partial matches, or those of all nodes, take it: a head may have an assignment for each."""
        other = self.mutual if partial else self.forced
        return self if other is None else replace(self, assignment=other)


@dataclass(frozen=True)
class Solution(Batch):
    """What a discrete solver says: a batch of permutations, what they are worth and how they were reached."""

    assignment: Float[Tensor, "B N M"]
    """0/1, zero on padding; rows and columns sum to at most one."""
    objective: Float[Tensor, " B"]
    """Of `assignment`; smaller is better."""
    iterations: Int[Tensor, " B"]
    """Steps that each pair took."""
    converged: Bool[Tensor, " B"]
    """True where the solver stopped because nothing changed any more, not because steps ran out."""


Head = Callable[[GraphPair, Features, Features], Matching]
Loss = Callable[[Matching, GraphPair], Tensor]
