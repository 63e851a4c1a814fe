"""A graph-network block on the association graph: edges, candidate matches and the whole pair hear each other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import relu

from quadmatch.graph import Batch


@dataclass(frozen=True)
class Association(Batch):
    """What is known of candidate matches, of pairs of edges that join them, and of each pair of graphs."""

    candidates: Float[Tensor, "B N M C"]
    edges: Float[Tensor, "B E F C"]
    whole: Float[Tensor, "B C"]


@dataclass(frozen=True)
class Places(Batch):
    """Where edges begin and end, and which candidates are real; marks of edges that are padding are zero."""

    source_starts: Float[Tensor, "B 1 E N"]
    source_ends: Float[Tensor, "B 1 E N"]
    target_starts: Float[Tensor, "B 1 F M"]
    target_ends: Float[Tensor, "B 1 F M"]
    mask: Bool[Tensor, "B N M"]

    @property
    def joined(self) -> Float[Tensor, "B E F 1"]:
        """One for each pair of real edges."""
        return (self.source_starts.sum(-1)[:, 0, :, None] * self.target_starts.sum(-1)[:, 0, None, :])[..., None]


class GraphNetworkBlock(nn.Module):
    """The whole, edges and nodes in turn, each by one layer of what it touches, added to what was there.

    `u ← u + σ([mean v ; mean e ; u] W_u)`, `e ← e + σ([e ; v_start ; v_end ; u] W_e)`,
    `v ← v + σ([v ; mean of e that start here ; u] W_v)`, σ ReLU, with biases (Battaglia et al., arXiv 1806.01261, who
    begin with the edges: then what the last block says of the whole would reach nobody). The maps of nodes are applied
    before nodes are spread to edges, which is the same and less work.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edge, self.start, self.end, self.edge_whole = (nn.Linear(width, width, bias=k == 0) for k in range(4))
        self.node = nn.Linear(3 * width, width)
        self.whole = nn.Linear(3 * width, width)

    def forward(self, state: Association, places: Places) -> Association:
        """The next state, zero on padding."""
        candidates, edges, whole = state.candidates, state.edges, state.whole
        joined, real = places.joined, places.mask[..., None].to(candidates.dtype)
        whole = whole + relu(self.whole(torch.cat([_average(candidates, real), _average(edges, joined), whole], -1)))
        starts = spread(self.start(candidates), places.source_starts, places.target_starts)
        ends = spread(self.end(candidates), places.source_ends, places.target_ends)
        heard = self.edge(edges) + starts + ends + self.edge_whole(whole)[:, None, None]
        edges = edges + joined * relu(heard)
        incoming = gather(edges, places) / gather(joined, places).clamp(min=1)
        around = torch.cat([candidates, incoming, whole[:, None, None].expand_as(candidates)], -1)
        candidates = candidates + real * relu(self.node(around))
        return Association(candidates, edges, whole)


def spread(
    candidates: Float[Tensor, "B N M C"], rows: Float[Tensor, "B 1 E N"], columns: Float[Tensor, "B 1 F M"]
) -> Float[Tensor, "B E F C"]:
    """What the candidate at the marked end of each pair of edges says."""
    return (rows @ candidates.permute(0, 3, 1, 2) @ columns.mT).permute(0, 2, 3, 1)


def gather(edges: Float[Tensor, "B E F C"], places: Places) -> Float[Tensor, "B N M C"]:
    """The sum over pairs of edges that start at a candidate."""
    return (places.source_starts.mT @ edges.permute(0, 3, 1, 2) @ places.target_starts).permute(0, 2, 3, 1)


def _average(values: Float[Tensor, "B N M C"], real: Float[Tensor, "B N M 1"]) -> Float[Tensor, "B C"]:
    return (values * real).sum((1, 2)) / real.sum((1, 2)).clamp(min=1)
