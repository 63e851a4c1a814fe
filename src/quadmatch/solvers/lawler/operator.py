"""Products with Lawler's affinity matrix K (N·M × N·M), which is never built.

K[(i,k), (j,l)] says how well the edge i→j of the source agrees with the edge k→l of the target; its
diagonal says how alike the nodes i and k are. A soft assignment V is [N, M], and K·vec(V) is an [N, M]
again. Several of them, such as the channels of a network on the matches, are multiplied by the same K at
once: [B, C, N, M], the channels before the nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quadmatch.graph import Batch


class AffinityOperator(Batch, ABC):
    """V ↦ K·V for a padded batch of pairs of graphs."""

    unary: Float[Tensor, "B N M"]

    def __call__(self, v: Float[Tensor, "B *C N M"]) -> Float[Tensor, "B *C N M"]:
        """K·vec(V), reshaped to V's shape; of each channel, if V has channels."""
        return self._multiply(v) if v.ndim == 4 else self._multiply(v[:, None])[:, 0]

    @abstractmethod
    def _multiply(self, v: Float[Tensor, "B C N M"]) -> Float[Tensor, "B C N M"]:
        """K·vec(V) of each channel."""

    def score(self, v: Float[Tensor, "B *C N M"]) -> Float[Tensor, " B *C"]:
        """vec(V)ᵀ·K·vec(V): how well a (soft) assignment preserves nodes and edges; larger is better."""
        return (v * self(v)).sum((-2, -1))


@dataclass(frozen=True)
class EdgeAffinity(AffinityOperator):
    """Any affinity between edges: K·V = unary∘V + G₁[Ke∘(H₁ᵀ V H₂)]G₂ᵀ, G starts and H ends of edges."""

    unary: Float[Tensor, "B N M"]
    edge: Float[Tensor, "B E F"]
    """Ke: affinity of each source edge to each target edge; an undirected edge is two directed ones."""
    source_edges: Int[Tensor, "B E 2"]
    """(start, end) of each edge; negative where a pair has fewer edges than its batch mates."""
    target_edges: Int[Tensor, "B F 2"]

    def _multiply(self, v: Float[Tensor, "B C N M"]) -> Float[Tensor, "B C N M"]:
        """Compiled on the processor where no gradient is asked for, dense products elsewhere."""
        tensors = (v, self.unary, self.edge)
        wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if wanted or v.device.type != "cpu" or v.dtype.itemsize < 4 or torch.compiler.is_compiling():
            return self._multiply_dense(v)
        from quadmatch.solvers.lawler.edge_product import multiply_edges

        result = self.unary.detach()[:, None] * v.detach()
        edges = (self.source_edges.numpy(), self.target_edges.numpy())
        multiply_edges(self.edge.detach().numpy(), *edges, v.detach().contiguous().numpy(), result.numpy())
        return result

    def meet(self, v: Float[Tensor, "B N M"]) -> Float[Tensor, "B E F"]:
        """V[i,k]·V[j,l] of each edge i→j of the source and k→l of the target: how far both ends are matched."""
        starts, ends = mark_edges(self.source_edges, v.shape[1], v.dtype)
        other_starts, other_ends = mark_edges(self.target_edges, v.shape[2], v.dtype)
        return ((starts @ v[:, None] @ other_starts.mT) * (ends @ v[:, None] @ other_ends.mT))[:, 0]

    def _multiply_dense(self, v: Float[Tensor, "B C N M"]) -> Float[Tensor, "B C N M"]:
        starts, ends = mark_edges(self.source_edges, v.shape[2], v.dtype)
        other_starts, other_ends = mark_edges(self.target_edges, v.shape[3], v.dtype)
        met = self.edge[:, None] * (ends @ v @ other_ends.transpose(2, 3))
        return self.unary[:, None] * v + starts.transpose(2, 3) @ met @ other_starts


def mark_edges(
    edges: Int[Tensor, "B E 2"], nodes: int, kind: torch.dtype
) -> tuple[Float[Tensor, "B 1 E N"], Float[Tensor, "B 1 E N"]]:
    """Starts and ends of edges as two [B, 1, E, N] matrices of zeros and ones."""
    marked = (edges[..., None] == torch.arange(nodes, device=edges.device)).to(kind)
    return marked[:, None, :, 0], marked[:, None, :, 1]


@dataclass(frozen=True)
class NodeSumAffinity(AffinityOperator):
    """Edge affinities that are sums of node affinities: four dense products over [B, N, M].

    affinity(i→j, k→l) = A[i,j]·B[k,l]·(P[i,k] + Q[i,l] + Q[j,k] + P[j,l]), so that
    K·V = unary∘V + P∘(A V Bᵀ) + (Q∘(A V))Bᵀ + A(Q∘(V Bᵀ)) + A(P∘V)Bᵀ; A and B may be asymmetric and weighted.
    """

    unary: Float[Tensor, "B N M"]
    same: Float[Tensor, "B N M"]
    """P: starts with starts and ends with ends."""
    crossed: Float[Tensor, "B N M"]
    """Q: the start of one edge with the end of the other."""
    source: Float[Tensor, "B N N"]
    target: Float[Tensor, "B M M"]

    def _multiply(self, v: Float[Tensor, "B C N M"]) -> Float[Tensor, "B C N M"]:
        unary, same, crossed, source = (one[:, None] for one in (self.unary, self.same, self.crossed, self.source))
        turned = self.target.transpose(1, 2)[:, None]
        left = source @ v
        ends = crossed * (v @ turned) + (same * v) @ turned
        starts = same * (left @ turned) + (crossed * left) @ turned
        return unary * v + starts + source @ ends


def list_edges(adjacency: Float[Tensor, "B N N"]) -> Int[Tensor, "B E 2"]:
    """(start, end) of every non-zero entry, in row order; −1 where a graph has fewer than the most."""
    present = adjacency != 0
    counts = present.sum((1, 2))
    edges = torch.full((len(adjacency), int(counts.max()) if len(counts) else 0, 2), -1, device=adjacency.device)
    which, start, end = present.nonzero(as_tuple=True)
    place = torch.arange(len(which), device=which.device) - (counts.cumsum(0) - counts)[which]
    edges[which, place] = torch.stack((start, end), -1)
    return edges
