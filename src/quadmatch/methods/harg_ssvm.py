"""HARG-SSVM: M. Cho, K. Alahari, J. Ponce, *Learning Graphs to Match*, ICCV 2013, a classical baseline.

score(X) = Σ X_ik Σ_c β_c x_ic y_kc + Σ X_ik X_jl Σ_b γ_b h_ijb g_klb is linear in the weights β and γ; x and y are
attributes of nodes, h and g histograms of log-length and direction of edges. A combinatorial solver maximises it. The
weights are those of a structured SVM: with the margin in training, the solver's answer is the most violated
constraint, and the gradient of the loss `hamming` at a large `strength` is what that answer uses of an attribute less
what the truth uses, which is the SVM's; weight decay bounds the weights.

Chosen: attributes of nodes are the image's read-outs where the paper has SIFT, which is not among the features here,
so that figures are not those of SIFT. One set of weights serves all classes and all nodes, where the paper learns a
model graph for each class. Opposite directions share a weight, so that an edge counts the same both ways.
"""

from __future__ import annotations

import torch
from torch import nn

from quadmatch.graph import GraphPair
from quadmatch.layers.combinatorial import CombinatorialAssign
from quadmatch.layers.histograms import describe_edges
from quadmatch.layers.structure import weigh_pair
from quadmatch.matching import Features, Matching
from quadmatch.solvers.lawler.operator import EdgeAffinity, list_edges


class HARGSSVM(nn.Module):
    """`channels` image features of a node; histograms of `lengths` and 2·`half_directions` bins of an edge."""

    def __init__(
        self,
        *,
        channels: int = 1024,
        lengths: int = 9,
        half_directions: int = 9,
        strength: float = 1e5,
        margin: float = 1.0,
        solver_iterations: int = 15,
    ) -> None:
        super().__init__()
        self.nodes = nn.Parameter(torch.ones(channels))
        self.lengths = nn.Parameter(torch.full((lengths,), 0.1))
        self.directions = nn.Parameter(torch.full((half_directions,), 0.1))
        self.assign = CombinatorialAssign(maximal=True, strength=strength, margin=margin, iterations=solver_iterations)

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """Match every pair of the batch; the assignment is 0/1."""
        unary = ((source.join() * self.nodes) @ target.join().mT).masked_fill(~pair.mask, 0)
        weights = torch.cat([self.lengths, self.directions, self.directions])
        graphs = (pair.source, pair.target)
        lists = [list_edges(graph.adjacency.abs() + graph.adjacency.mT.abs()) for graph in graphs]
        sizes = (len(self.lengths), 2 * len(self.directions))
        first, second = (
            describe_edges(graph.points.to(unary.dtype), edges, *sizes) for graph, edges in zip(graphs, lists)
        )
        operator = EdgeAffinity(unary, (first * weights) @ second.mT, lists[0], lists[1])
        return Matching(unary, self.assign(operator, pair), *weigh_pair(pair, source, target))
