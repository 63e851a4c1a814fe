"""qc-DGM: deep graph matching under quadratic constraint (arXiv 2103.06643, CVPR 2021)."""

from __future__ import annotations

from typing import Unpack

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from quadmatch.graph import Graph, GraphPair
from quadmatch.layers.affinity import BilinearAffinity, CosineAffinity, divide_by_largest
from quadmatch.layers.attributes import NodeAttributes
from quadmatch.layers.cross_graph import Merge, concatenate_other, join_graphs, join_nodes
from quadmatch.layers.quadratic_constraint import QuadraticStep
from quadmatch.layers.refinement import Refine, RefineLayer
from quadmatch.layers.structure import weigh_adjacency
from quadmatch.matching import Features, Matching
from quadmatch.methods.qcdgm_presets import Preset, Switches, choose_switches
from quadmatch.solvers.sinkhorn import sinkhorn


class QCDGM(nn.Module):
    """qc-DGM₁ (`refine="gcn"`) and qc-DGM₂ (`refine="spline"`) as a head.

    attributes ▸ (convolution ▸ cross-graph step) × layers ▸ affinity ▸ Sinkhorn ▸ quadratic constraint.
    `preset` names a set of `Switches`; a switch given by name overrides it. `channels` is the number of
    image features of a node, `local` and `edge` together. The parameters do not depend on the constraint:
    what was trained with it loads into a head without, and the other way round.
    """

    def __init__(
        self,
        refine: Refine = "gcn",
        preset: Preset = "paper",
        *,
        channels: int = 1024,
        **switches: Unpack[Switches],
    ) -> None:
        super().__init__()
        self.switches = chosen = choose_switches(refine, preset, switches)
        self.channels = channels
        self.attributes = NodeAttributes(
            channels,
            prior=chosen["geometric_prior"],
            frame=chosen["frame"],
            frequencies=chosen["frequencies"],
            width=(chosen["width"] or channels) if chosen["project"] else None,
            dropout=chosen["dropout"],
        )
        # A SplineConv without residual connections corrects the attributes, as in BB-GM: x + 0.1·f(x).
        self.corrects = refine == "spline" and not chosen["project"]
        self.layers, self.affinities = self._build_layers(refine)
        self.merges = self._build_merges()
        self.constrain = self._build_constraint() if chosen["quadratic_constraint"] else None

    def _build_layers(self, refine: Refine) -> tuple[nn.ModuleList, nn.ModuleList]:
        chosen, inputs = self.switches, self.attributes.channels
        width = chosen["width"] or inputs + (self.channels if chosen["widen"] else 0)
        layers, affinities = nn.ModuleList(), nn.ModuleList()
        for remaining in reversed(range(chosen["layers"])):
            corrects = self.corrects and not remaining
            outputs = self.attributes.channels if corrects else width
            layers.append(
                RefineLayer(
                    inputs,
                    outputs,
                    refine=refine,
                    form=chosen["form"],
                    reach=chosen["reach"],
                    activate=not corrects,
                    residual=chosen["project"],
                    dropout=chosen["dropout"] if chosen["project"] else 0.0,
                )
            )
            if chosen["cross_graph"] or not remaining:
                bilinear = chosen["affinity"] == "bilinear"
                affinities.append(BilinearAffinity(outputs) if bilinear else CosineAffinity(chosen["scale"]))
            inputs = 2 * outputs if chosen["cross_graph"] and not chosen["merge"] else outputs
        return layers, affinities

    def _build_merges(self) -> nn.ModuleList:
        chosen = self.switches
        if not (chosen["merge"] and chosen["cross_graph"]):
            return nn.ModuleList()
        merged = [one.outputs for one in self.layers if isinstance(one, RefineLayer)][:-1]
        return nn.ModuleList(Merge(width, dropout=chosen["dropout"]) for width in merged)

    def _build_constraint(self) -> QuadraticStep:
        chosen = self.switches
        return QuadraticStep(
            weight=chosen["weight"],
            outer=chosen["outer"],
            inner=chosen["inner"],
            direction=chosen["direction"],
            temperature=chosen["temperature"],
            step=chosen["step"],
            detach=chosen["detach"],
            sinkhorn_iterations=chosen["sinkhorn_iterations"],
            unary=chosen["unary"],
            output=chosen["output"],
            output_temperature=chosen["score_temperature"],
            divide=chosen["divide"],
        )

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """Match every pair of the batch; both graphs go through the network as one batch."""
        graph, mask = join_graphs(pair.source, pair.target), pair.mask
        rows, columns = mask.shape[1:]
        image = join_nodes(
            torch.cat([source.local, source.edge], -1), torch.cat([target.local, target.edge], -1)
        )
        attributes = self.attributes(image, graph.points, graph.mask)
        features = inputs = attributes
        earlier: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            plain = index == 0 and not self.switches["weigh_first"]
            structure = graph.adjacency if plain else self._weigh(features, graph)
            features = inputs = layer(inputs, features, graph, structure)
            if self.switches["cross_graph"] and index + 1 < len(self.layers):
                ours, theirs = _split(features, rows, columns)
                _, assignment = self._score(index, ours, theirs, mask)
                earlier.append(assignment)
                inputs = join_nodes(*concatenate_other(ours, theirs, assignment))
                if self.merges:
                    features = inputs = self.merges[index](inputs, features, graph.mask)
        if self.corrects:
            features = attributes + 0.1 * features
        unary, assignment = self._score(-1, *_split(features, rows, columns), mask)
        structure = self._weigh(features, graph)
        a, b = structure[: len(mask), :rows, :rows], structure[len(mask) :, :columns, :columns]
        matching = Matching(unary, assignment, a, b, tuple(earlier))
        return matching if self.constrain is None else self.constrain(matching, mask)

    def _weigh(self, features: Tensor, graph: Graph) -> Float[Tensor, "B2 K K"]:
        if not self.switches["structural_context"]:
            return graph.adjacency
        return weigh_adjacency(features, graph.adjacency, self.switches["kernel"])

    def _score(
        self, index: int, source: Tensor, target: Tensor, mask: Bool[Tensor, "B N M"]
    ) -> tuple[Float[Tensor, "B N M"], Float[Tensor, "B N M"]]:
        """Scores of an affinity, and their assignment."""
        scores = self.affinities[index](source, target).masked_fill(~mask, 0)
        divide = self.switches["divide"] and not self.training
        return scores, sinkhorn(
            divide_by_largest(scores, mask) if divide else scores,
            mask,
            temperature=self.switches["score_temperature"],
            iterations=self.switches["sinkhorn_iterations"],
        )


def _split(both: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    source, target = both.tensor_split(2)
    return source[:, :rows], target[:, :columns]
