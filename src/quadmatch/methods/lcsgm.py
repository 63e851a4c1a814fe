"""LCSGM: T. Wang, H. Liu, Y. Li, Y. Jin, X. Hou, H. Ling, *Learning Combinatorial Solver for Graph Matching*,
CVPR 2020.

Encode, process, decode on the association graph: candidate matches are its nodes, pairs of edges its edges.
Blocks of a graph network (`GraphNetworkBlock`) update the whole, edges and nodes in turn; each candidate is
then classified. Trained with the loss `permutation`, whose `conflict` is the paper's one-to-one term.

Chosen, because neither code nor the sizes of layers were found: a candidate begins as [h_i ; h_k ; h_i∘h_k] of
projected image features, a pair of edges as the two offsets in units of the crop, each encoded by a linear map
and ReLU; five blocks with weights of their own and 32 channels; Sinkhorn of the scores at temperature 1, so
that rows and columns sum to at most one, in the place of the paper's normalisation of rows. Structures for the
constraint are as in qc-GMN.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

from quadmatch.graph import Graph, GraphPair
from quadmatch.layers.graph_network import Association, GraphNetworkBlock, Places
from quadmatch.layers.network import Assign
from quadmatch.layers.structure import weigh_pair
from quadmatch.matching import Features, Matching
from quadmatch.solvers.lawler.operator import list_edges, mark_edges


class LCSGM(nn.Module):
    """`channels` is the number of image features of a node, `width` that of candidates, edges and the whole."""

    def __init__(
        self,
        *,
        channels: int = 1024,
        width: int = 32,
        blocks: int = 5,
        temperature: float = 1.0,
        sinkhorn_iterations: int = 20,
        extent: float = 256.0,
    ) -> None:
        super().__init__()
        self.project = nn.Linear(channels, width)
        self.encode_candidates, self.encode_edges = nn.Linear(3 * width, width), nn.Linear(4, width)
        self.blocks = nn.ModuleList(GraphNetworkBlock(width) for _ in range(blocks))
        # A bias would be the same for all candidates, which Sinkhorn cannot see.
        self.classify = nn.Linear(width, 1, bias=False)
        self.assign = Assign(temperature, iterations=sinkhorn_iterations)
        self.extent = extent

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """Match every pair of the batch."""
        nodes = (self.project(source.join()), self.project(target.join()))
        (source_marks, source_offsets), (target_marks, target_offsets) = (
            self.describe_edges(graph, nodes[0].dtype) for graph in (pair.source, pair.target)
        )
        places = Places(*source_marks, *target_marks, pair.mask)
        state = self.encode(nodes, (source_offsets, target_offsets), places)
        for block in self.blocks:
            state = block(state, places)
        scores = self.classify(state.candidates)[..., 0].masked_fill(~pair.mask, 0)
        return Matching(scores, self.assign(scores, pair.mask), *weigh_pair(pair, source, target))

    def describe_edges(
        self, graph: Graph, kind: torch.dtype
    ) -> tuple[tuple[Float[Tensor, "B 1 E N"], Float[Tensor, "B 1 E N"]], Float[Tensor, "B E 2"]]:
        """Where the edges of each graph begin and end, and how far and where to they go."""
        starts, ends = mark_edges(list_edges(graph.adjacency), graph.mask.shape[1], kind)
        points = graph.points.to(kind).masked_fill(~graph.mask[..., None], 0)
        return (starts, ends), (ends - starts)[:, 0] @ points / self.extent

    def encode(
        self,
        nodes: tuple[Float[Tensor, "B N C"], Float[Tensor, "B M C"]],
        offsets: tuple[Float[Tensor, "B E 2"], Float[Tensor, "B F 2"]],
        places: Places,
    ) -> Association:
        """What the blocks begin with."""
        ours, theirs = _pair_up(*nodes)
        candidates = relu(self.encode_candidates(torch.cat([ours, theirs, ours * theirs], -1)))
        edges = relu(self.encode_edges(torch.cat(_pair_up(*offsets), -1)))
        candidates = candidates.masked_fill(~places.mask[..., None], 0)
        return Association(candidates, edges * places.joined, candidates.new_zeros(len(candidates), edges.shape[-1]))


def _pair_up(
    rows: Float[Tensor, "B N C"], columns: Float[Tensor, "B M C"]
) -> tuple[Float[Tensor, "B N M C"], Float[Tensor, "B N M C"]]:
    """Both as if there were one for each pair."""
    size = (len(rows), rows.shape[1], columns.shape[1], rows.shape[2])
    return rows[:, :, None].expand(size), columns[:, None].expand(size)
