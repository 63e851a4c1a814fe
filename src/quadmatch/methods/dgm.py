"""DGM, the network of *Deep Graph Matching under Quadratic Constraint* (arXiv 2103.06643, CVPR 2021).

With the constraint behind it (an experiment's table `[constraint]`) it is qc-DGM: `refine="gcn"` gives
qc-DGM₁, `"spline"` qc-DGM₂. Three readings: what the paper prints, what its authors released, and a compact
network for two processor cores, which is the one that ships trained. qc-DGM₂ was never released: its refiner
is read as BB-GM's, without a cross-graph step or wider layers.
"""

from __future__ import annotations

from typing import Literal

from quadmatch.layers.affinity import BilinearAffinity, CosineAffinity
from quadmatch.layers.attributes import Frame, NodeAttributes
from quadmatch.layers.cross_graph import Merge
from quadmatch.layers.network import Assign, SiameseNetwork
from quadmatch.layers.refinement import Refine, RefineLayer, stack_layers
from quadmatch.layers.structure import Kernel

CORRECTION = 0.1
"""Share of a SplineConv without residual connections that is added to the attributes, as in BB-GM."""


def build_published(
    reading: Literal["paper", "released"],
    refine: Refine = "gcn",
    *,
    channels: int = 1024,
    width: int | None = None,
    layers: int = 2,
    geometric_prior: bool = True,
    structural_context: bool = True,
    sinkhorn_iterations: int = 20,
) -> SiameseNetwork:
    """As the paper prints it, or as its authors' code has it with its leaks between pairs mended.

    Both concatenate the attributes and have a bilinear affinity. The paper: P' = σ(A_D P W_r + P W_s) on edges
    weighted by cosines, scores at temperature 1. The released code: wider layers, the first on plain edges,
    with a cross-graph step between them, edges weighted by exponentials of cosines, and scores at temperature
    1/20, divided by their largest in evaluation mode.

    `channels` is the number of image features of a node, `width` that after each layer, by default of the
    attributes. Without `geometric_prior` a node has no coordinates; without `structural_context` edges are
    not weighted by features: the rows of the paper's ablation.
    """
    released, corrects = reading == "released", refine == "spline"
    wide = released and not corrects
    attributes = NodeAttributes(channels, prior=geometric_prior)
    width = width or attributes.channels + (channels if wide else 0)
    stack, affinities = stack_layers(
        lambda a, b, last: RefineLayer(a, b, refine=refine, form=reading, activate=not (corrects and last)),
        BilinearAffinity,
        [*[attributes.channels, *[width] * layers][:layers], attributes.channels if corrects else width],
        cross_graph=wide,
    )
    return SiameseNetwork(
        attributes,
        stack,
        affinities,
        Assign(0.05 if released else 1.0, iterations=sinkhorn_iterations, divide=released),
        kernel=("exp_cosine" if released else "cosine") if structural_context else None,
        plain_layers=int(released),
        correction=CORRECTION if corrects else None,
    )


def build_compact(
    refine: Refine = "gcn",
    *,
    channels: int = 1024,
    width: int | None = None,
    layers: int = 2,
    geometric_prior: bool = True,
    structural_context: bool = True,
    kernel: Kernel = "exp_cosine",
    frame: Frame = "box",
    frequencies: int = 0,
    dropout: float = 0.0,
    cross_graph: bool | None = None,
    merge: bool = False,
    reach: float = 256.0,
) -> SiameseNetwork:
    """For two cores: attributes normalised and projected, residual connections, cosine affinity.

    `width` is 512 for a GCN and 384 for SplineConv by default, and only the GCN has a `cross_graph` step.
    `frame` and `frequencies` are those of `NodeAttributes`; `merge` maps what the cross-graph step adds back
    to `width`; `reach` is how many pixels the kernel of a SplineConv extends over.
    """
    width = width or (512 if refine == "gcn" else 384)
    cross_graph = refine == "gcn" if cross_graph is None else cross_graph
    attributes = NodeAttributes(
        channels, prior=geometric_prior, frame=frame, frequencies=frequencies, width=width, dropout=dropout
    )
    stack, affinities = stack_layers(
        lambda a, b, last: RefineLayer(a, b, refine=refine, reach=reach, residual=True, dropout=dropout),
        lambda channels: CosineAffinity(),
        [width] * (layers + 1),
        cross_graph=cross_graph,
        merge=merge,
    )
    merges = [Merge(width, dropout=dropout) for _ in stack[1:]] if merge and cross_graph else []
    context = kernel if structural_context else None
    return SiameseNetwork(attributes, stack, affinities, Assign(1.0), merges=merges, kernel=context)
