"""In what the paper, its released code and the network for two cores differ, as switches of `QCDGM`."""

from __future__ import annotations

from typing import Literal, TypedDict

from quadmatch.layers.attributes import Frame
from quadmatch.layers.quadratic_constraint import Unary
from quadmatch.layers.refinement import Refine
from quadmatch.layers.structure import Kernel

Preset = Literal["paper", "released", "compact"]


class Switches(TypedDict, total=False):
    """What a preset sets and a keyword of `QCDGM` overrides."""

    geometric_prior: bool
    """Coordinates among the node attributes."""
    structural_context: bool
    """Adjacencies weighted by deep features; off: as they come, in the convolutions and in the constraint."""
    quadratic_constraint: bool
    """Frank–Wolfe on the structures, after the affinity."""
    cross_graph: bool
    """Between layers, each node gets the features of what it is matched to so far."""
    merge: bool
    """These are mapped back to `width` before the next convolution; off: it has twice the inputs."""
    layers: int
    width: int | None
    """Channels after each layer; None: those of the attributes."""
    widen: bool
    """Where `width` is None, `channels` more."""
    frame: Frame
    """Coordinates as a direction from the image's corner, in the frame of the box, of their own graph, or of both."""
    frequencies: int
    """Sines and cosines that the geometric prior adds to the coordinates."""
    project: bool
    """Attributes normalised and mapped to `width`; residual connection and LayerNorm after each layer."""
    dropout: float
    """Of image features and of what each convolution adds."""
    form: Literal["paper", "released"]
    """Of the graph convolution."""
    reach: float
    """Pixels to each side over which the kernel of a spline convolution spreads its knots."""
    weigh_first: bool
    """Whether the first convolution sees the weighted adjacency, or the plain one."""
    kernel: Kernel
    """What weighs an edge by the features of its ends."""
    affinity: Literal["bilinear", "cosine"]
    scale: float
    """Where the learned scale of a cosine affinity starts."""
    score_temperature: float
    """Of the Sinkhorn that turns scores into an assignment."""
    divide: bool
    """In evaluation mode, scores are divided by the largest of their pair."""
    weight: float
    """λ of the constraint: weight of the structures; 1 − λ is that of the scores."""
    outer: int
    inner: int
    direction: Literal["entropic", "shifted"]
    temperature: float
    step: Literal["schedule", "line_search"]
    detach: bool
    sinkhorn_iterations: int
    unary: Unary
    """What the constraint stays near to, and starts from; with "logits" it starts from their assignment."""
    output: Literal["constrained", "residual"]


PAPER: Switches = {
    "geometric_prior": True,
    "structural_context": True,
    "quadratic_constraint": True,
    "cross_graph": False,
    "merge": False,
    "layers": 2,
    "width": None,
    "widen": False,
    "frame": "direction",
    "frequencies": 0,
    "project": False,
    "dropout": 0.0,
    "form": "paper",
    "reach": 256.0,
    "weigh_first": True,
    "kernel": "cosine",
    "affinity": "bilinear",
    "scale": 20.0,
    "score_temperature": 1.0,
    "divide": False,
    "weight": 0.1,
    "outer": 3,
    "inner": 5,
    "direction": "entropic",
    "temperature": 0.1,
    "step": "schedule",
    "detach": False,
    "sinkhorn_iterations": 20,
    "unary": "assignment",
    "output": "constrained",
}

RELEASED: Switches = {
    **PAPER,
    "cross_graph": True,
    "widen": True,
    "form": "released",
    "weigh_first": False,
    "kernel": "exp_cosine",
    "score_temperature": 0.05,
    "divide": True,
    "inner": 3,
    "direction": "shifted",
    "unary": "scores",
    "output": "residual",
}

COMPACT: Switches = {
    **PAPER,
    "cross_graph": True,
    "width": 512,
    "frame": "box",
    "project": True,
    "form": "released",
    "kernel": "exp_cosine",
    "affinity": "cosine",
    "outer": 1,
}

# qc-DGM₂ was never released: its refiner is read as BB-GM's, without a cross-graph step or wider layers.
PRESETS: dict[Preset, dict[Refine, Switches]] = {
    "paper": {"gcn": PAPER, "spline": PAPER},
    "released": {"gcn": RELEASED, "spline": {**RELEASED, "cross_graph": False, "widen": False}},
    "compact": {"gcn": COMPACT, "spline": {**COMPACT, "cross_graph": False, "width": 384}},
}


def choose_switches(refine: Refine, preset: Preset, changes: Switches) -> Switches:
    """The preset's switches with `changes` on top."""
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    if refine not in PRESETS[preset]:
        raise ValueError(f"refine must be 'gcn' or 'spline', got {refine!r}")
    if unknown := sorted(set(changes) - set(PAPER)):
        raise TypeError(f"QCDGM has no switch {', '.join(unknown)}; it has {', '.join(PAPER)}")
    chosen: Switches = {**PRESETS[preset][refine], **changes}
    if chosen["affinity"] not in ("bilinear", "cosine"):
        raise ValueError(f"affinity must be 'bilinear' or 'cosine', got {chosen['affinity']!r}")
    if chosen["layers"] < 1:
        raise ValueError(f"layers must be at least 1, got {chosen['layers']}")
    return chosen
