"""The compact network equals its description written out, node by node, at every value of its switches."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from random_pairs import random_pair
from torch import Tensor, nn

from quadmatch import Features, Graph
from quadmatch.layers.network import SiameseNetwork
from quadmatch.methods.dgm import build_compact
from quadmatch.solvers.linear.sinkhorn import sinkhorn

USUAL: dict[str, Any] = {
    "layers": 2,
    "kernel": "exp_cosine",
    "frame": "box",
    "frequencies": 0,
    "cross_graph": None,
    "merge": False,
    "reach": 256.0,
    "geometric_prior": True,
    "structural_context": True,
}
"""What the switches are unless they are given."""
OTHERS: list[dict[str, Any]] = [
    {},
    {"kernel": "cosine"},
    {"kernel": "linear"},
    {"frame": "graph"},
    {"frame": "direction", "frequencies": 1},
    {"frame": "both", "frequencies": 3},
    {"frequencies": 2},
    {"cross_graph": True},
    {"cross_graph": False},
    {"cross_graph": True, "merge": True, "layers": 3},
    {"layers": 1},
    {"reach": 128.0},
    {"width": 20},
    {"geometric_prior": False},
    {"structural_context": False},
]


def _norm(layer: nn.LayerNorm, row: Tensor) -> Tensor:
    spread = (row - row.mean()).square().mean()
    return (row - row.mean()) / (spread + 1e-5).sqrt() * layer.weight + layer.bias


def _cosine(first: Tensor, second: Tensor) -> Tensor:
    return first @ second / first.norm() / second.norm()


def _place(point: Tensor, points: Tensor, frame: str, frequencies: int) -> Tensor:
    """Where a node lies, as numbers."""
    if frame == "both":
        return torch.cat([_place(point, points, one, frequencies) for one in ("box", "graph")])
    centre = points.mean(0)
    far = (points - centre).square().sum(1).mean().sqrt()
    place = (point - centre) / (4 * far) if frame == "graph" else point / 256 - 0.5
    waves = [f(2**k * math.pi * place) for k in range(frequencies) for f in (torch.sin, torch.cos)]
    return torch.cat([point / point.norm() if frame == "direction" else place, *waves])


def _begin(head: SiameseNetwork, features: Features, graph: Graph, switches: dict[str, Any]) -> list[Tensor]:
    parts, points, rows = head.attributes, graph.points[0], []
    for node, point in enumerate(points):
        image = torch.cat([features.local[0, node], features.edge[0, node]])
        row = parts.project.weight @ _norm(parts.norm, image) + parts.project.bias
        if switches["geometric_prior"]:
            place = _place(point, points, switches["frame"], switches["frequencies"])
            row = row + parts.place.weight @ place + parts.place.bias
        rows.append(row)
    return rows


def _weigh(nodes: list[Tensor], graph: Graph, switches: dict[str, Any]) -> Tensor:
    kernel = switches["kernel"] if switches["structural_context"] else None
    weights = graph.adjacency[0].clone()
    for i, first in enumerate(nodes):
        for j, second in enumerate(nodes):
            if kernel == "linear":
                weights[i, j] *= first @ second
            elif kernel is not None:
                alike = _cosine(first, second)
                weights[i, j] *= alike.exp() if kernel == "exp_cosine" else alike
    return weights


def _convolve(layer: nn.Module, nodes: list[Tensor], weights: Tensor) -> list[Tensor]:
    """Of a node: what its neighbours send, by the weight of the edge over the sum of the sender's, and itself."""
    sent = [torch.relu(layer.neighbours.weight @ row + layer.neighbours.bias) for row in nodes]
    total = [weights[:, j].abs().sum() for j in range(len(nodes))]
    kept = [torch.relu(layer.itself.weight @ row + layer.itself.bias) for row in nodes]
    return [
        kept[i] + sum(weights[i, j] / total[j] * sent[j] for j in range(len(nodes)) if total[j] > 0)
        for i in range(len(nodes))
    ]


def _convolve_by_offset(layer: nn.Module, nodes: list[Tensor], graph: Graph, reach: float) -> list[Tensor]:
    """Of a node: the largest of what its neighbours send, by a kernel of 5 × 5 knots over the offset, and itself."""
    points, found = graph.points[0], []
    for i, row in enumerate(nodes):
        messages = []
        for j in graph.adjacency[0, i].nonzero().flatten().tolist():
            place = (0.5 + 0.5 * (points[i] - points[j]) / reach).clamp(0, 1) * 4
            hats = [[max(0.0, 1 - abs(float(x) - knot)) for knot in range(5)] for x in place]
            kernel = sum(hats[0][a] * hats[1][b] * layer.weight[5 * a + b] for a in range(5) for b in range(5))
            messages.append(nodes[j] @ kernel)
        found.append(torch.relu(torch.stack(messages).amax(0) + layer.root.weight @ row + layer.root.bias))
    return found


def _score(head: SiameseNetwork, index: int, source: list[Tensor], target: list[Tensor]) -> Tensor:
    scale = head.affinities[index].log_scale.exp()
    return torch.stack([torch.stack([scale * _cosine(one, other) for other in target]) for one in source])


def _write_out(
    head: SiameseNetwork, graphs: list[Graph], features: list[Features], refine: str, switches: dict[str, Any]
) -> tuple[Tensor, Tensor]:
    """Scores of the last layer, and the weights of the first graph's edges."""
    crosses = refine == "gcn" if switches["cross_graph"] is None else switches["cross_graph"]
    nodes = [_begin(head, one, graph, switches) for one, graph in zip(features, graphs)]
    inputs = nodes
    for index, layer in enumerate(head.layers):
        if refine == "gcn":
            weights = [_weigh(one, graph, switches) for one, graph in zip(nodes, graphs)]
            added = [_convolve(layer.convolution, one, weight) for one, weight in zip(inputs, weights)]
        else:
            added = [
                _convolve_by_offset(layer.convolution, one, graph, switches["reach"])
                for one, graph in zip(inputs, graphs)
            ]
        nodes = [[_norm(layer.norm, a + b) for a, b in zip(one, more)] for one, more in zip(nodes, added)]
        inputs = nodes
        if crosses and index + 1 < len(head.layers):
            soft = sinkhorn(_score(head, index, *nodes)[None], temperature=1.0, iterations=20)[0]
            others = soft @ torch.stack(nodes[1]), soft.T @ torch.stack(nodes[0])
            inputs = [[torch.cat([a, b]) for a, b in zip(one, other)] for one, other in zip(nodes, others)]
            if switches["merge"]:
                merge = head.merges[index]
                made = [[torch.relu(merge.linear.weight @ row + merge.linear.bias) for row in one] for one in inputs]
                nodes = [[_norm(merge.norm, a + b) for a, b in zip(one, more)] for one, more in zip(nodes, made)]
                inputs = nodes
    return _score(head, -1, *nodes), _weigh(nodes[0], graphs[0], switches)


@pytest.mark.parametrize("switches", OTHERS, ids=str)
@pytest.mark.parametrize("refine", ["gcn", "spline"])
def test_the_network_is_its_description(refine: str, switches: dict[str, Any]) -> None:
    torch.manual_seed(2)
    head = build_compact(refine, channels=12, **{"width": 16} | switches).double().eval()
    pair, *features = random_pair(5, 7, seed=3)
    with torch.no_grad():
        for parameter in head.parameters():  # so that no scale is one, and no shift zero
            parameter.add_(0.1 * torch.randn_like(parameter))
        found = head(pair, *features)
        scores, weights = _write_out(head, [pair.source, pair.target], features, refine, USUAL | switches)
    torch.testing.assert_close(found.unary[0], scores)
    torch.testing.assert_close(found.structure_source[0], weights)
    torch.testing.assert_close(found.assignment, sinkhorn(scores[None], temperature=1.0, iterations=20))
